import type { Area } from '../frame/area.ts';
import type { AccessRows } from '../frame/auth/access.ts';
import { auditRoutes } from './auditRoutes.ts';
import { authRoutes } from './authRoutes.ts';
import { invitationRoutes } from './invitationRoutes.ts';
import { keyRoutes } from './keyRoutes.ts';
import { mailLinkRoutes } from './mailLinkRoutes.ts';
import { memberRoutes } from './memberRoutes.ts';
import { meRoutes } from './meRoutes.ts';
import { signInRoutes } from './signInRoutes.ts';
import { spaceRoutes } from './spaceRoutes.ts';

/** Who may do what: signing in, the account, spaces and their members. */
const access = {
  // Authentication
  exchangeCode: 'anyone',
  createCode: 'signedIn',
  logout: 'signedIn',

  // Sign-in
  showSignIn: 'anyone',
  forwardCode: 'anyone',
  beginOidc: 'anyone',
  finishOidc: 'anyone',
  mailSignInLink: 'anyone',
  showSignInLink: 'anyone',
  followSignInLink: 'anyone',
  showInvitation: 'anyone',
  acceptInvitation: 'anyone',

  // Account and API keys
  getMe: 'signedIn',
  listSessions: 'signedIn',
  revokeSession: 'self',
  listOwnInvitations: 'signedIn',
  acceptOwnInvitation: 'self',
  declineInvitation: 'self',
  listApiKeys: 'signedIn',
  createApiKey: 'signedIn',
  revokeApiKey: 'self',

  // Spaces and members
  listSpaces: 'signedIn',
  createSpace: 'signedIn',
  getSpace: 'viewer',
  updateSpace: 'owner',
  deleteSpace: 'owner',
  listMembers: 'viewer',
  addMember: 'owner',
  changeMember: 'owner',
  removeMember: 'ownerOrSelf',
  listInvitations: 'owner',
  createInvitation: 'owner',
  revokeInvitation: 'owner',

  // Audit
  listAudit: 'owner',
} as const satisfies AccessRows;

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
