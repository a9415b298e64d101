import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { driveContentRoutes } from './contentRoutes.ts';
import { driveFindRoutes } from './findRoutes.ts';
import { driveItemRoutes } from './itemRoutes.ts';
import { drivePartRoutes } from './partRoutes.ts';
import { driveRoutes } from './routes.ts';
import { threadFileRoutes } from './threadFileRoutes.ts';
import { driveTrashRoutes } from './trashRoutes.ts';
import { driveUploadRoutes } from './uploadRoutes.ts';

export const drive = {
  access,
  routes: [
    driveRoutes,
    driveUploadRoutes,
    drivePartRoutes,
    driveFindRoutes,
    driveTrashRoutes,
    driveItemRoutes,
    driveContentRoutes,
    threadFileRoutes,
  ],
} as const satisfies Area;
