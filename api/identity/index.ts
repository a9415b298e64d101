import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { auditRoutes } from './auditRoutes.ts';
import { authRoutes } from './authRoutes.ts';
import { invitationRoutes } from './invitationRoutes.ts';
import { keyRoutes } from './keyRoutes.ts';
import { mailLinkRoutes } from './mailLinkRoutes.ts';
import { memberRoutes } from './memberRoutes.ts';
import { meRoutes } from './meRoutes.ts';
import { signInRoutes } from './signInRoutes.ts';
import { spaceRoutes } from './spaceRoutes.ts';

export const identity = {
  access,
  routes: [
    authRoutes,
    signInRoutes,
    mailLinkRoutes,
    meRoutes,
    keyRoutes,
    spaceRoutes,
    memberRoutes,
    invitationRoutes,
    auditRoutes,
  ],
} as const satisfies Area;
