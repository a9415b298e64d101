import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what: signing in, the account, spaces and their members. */
export const access = {
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
