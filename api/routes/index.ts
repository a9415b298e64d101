import type { Router } from 'express';
import type { RouteDeps } from '../deps.ts';
import { authRoutes } from './auth.ts';
import { chatRoutes } from './chat.ts';
import { docsRoutes } from './docs.ts';
import { keyRoutes } from './keys.ts';
import { meRoutes } from './me.ts';
import { memberRoutes } from './members.ts';
import { operationRoutes } from './operations.ts';
import { serviceRoutes } from './service.ts';
import { spaceRoutes } from './spaces.ts';
import { threadRoutes } from './threads.ts';

/** Every area's routes. A new area is a file in this folder and a line here; literal paths come before those with parameters. */
export const routes: readonly ((deps: RouteDeps) => Router)[] = [
  serviceRoutes,
  docsRoutes,
  authRoutes,
  meRoutes,
  keyRoutes,
  spaceRoutes,
  memberRoutes,
  chatRoutes,
  threadRoutes,
  operationRoutes,
];
