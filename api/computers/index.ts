import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { computerFileRoutes } from './fileRoutes.ts';
import { lifeRoutes } from './lifeRoutes.ts';
import { portHosts } from './ports/hosts.ts';
import { portRoutes } from './ports/routes.ts';
import { processRoutes } from './processes/routes.ts';
import { computerRoutes, metricsRoutes } from './routes.ts';
import { computerSecretRoutes } from './secretRoutes.ts';
import { snapshotRoutes } from './snapshotRoutes.ts';
import { openTerminal } from './terminal/openTerminal.ts';

export const computers = {
  access,
  routes: [
    computerRoutes,
    lifeRoutes,
    metricsRoutes,
    snapshotRoutes,
    computerSecretRoutes,
    processRoutes,
    computerFileRoutes,
    portRoutes,
  ],
  upgrades: { openTerminal },
  hosts: [portHosts],
} as const satisfies Area;
