import type { Role } from '../../../models/identity/tables.ts';
import type { operations } from '../../types.gen.ts';

export type OperationId = keyof operations;

/**
 * Who a caller must be.
 *
 * - `anyone`: no credential is asked for
 * - `operator`: loopback, or the operator's key; the route checks it
 * - `signed`: what comes proves itself by a signature; the route checks it
 * - `signedIn`: anybody with a credential, who sees and makes only what is theirs
 * - `self`: whose object it is; for everybody else it is not there (404)
 * - `threadOwner`: whose thread it is, for as long as they are a member; nobody else, an owner of the space neither (403)
 * - `viewer`, `editor`, `owner`: a member of the space with at least this role (403); for others the space is not there (404)
 * - `ownerOrSelf`: an owner of the space, or the member whom it is about
 */
export type Access = 'anyone' | 'operator' | 'signed' | 'signedIn' | 'self' | 'threadOwner' | Role | 'ownerOrSelf';

/**
 * Who may do what: the one table. Each operation of the contract has a row, or nothing compiles and the API does not start. Where `{spaceId}` is in
 * the path, the role is asked for before the route runs (middleware/authorization.ts); elsewhere the route asks, by
 * `authorizeOperation` or `authorizeThread`. test/api/frame/roles.test.ts calls every operation as every kind of caller and compares.
 */
export const accessTable = {
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

  // Secrets and audit
  listSecrets: 'viewer',
  getSecretsEnv: 'editor',
  setSecret: 'editor',
  deleteSecret: 'editor',
  storeDynamicSecret: 'viewer',
  listAudit: 'owner',

  // Chat: a viewer may ask; mode `work` changes things, and takes an editor
  listChatModels: 'signedIn',
  listModels: 'signedIn',
  streamChat: 'viewer',
  resumeThreadStream: 'threadOwner',
  getTurn: 'threadOwner',
  streamTurn: 'threadOwner',
  stopTurn: 'threadOwner',
  getChatSettings: 'viewer',
  putChatSettings: 'editor',

  // Notifications: to the caller's own devices
  getPushKey: 'signedIn',
  listPushSubscriptions: 'signedIn',
  addPushSubscription: 'signedIn',
  removePushSubscription: 'self',
  decideToolCall: 'threadOwner',

  // Tools: what agents reach is the owner's to say
  getEgress: 'viewer',
  putEgress: 'owner',
  listEgressLog: 'editor',
  listMcpServers: 'viewer',
  addMcpServer: 'owner',
  checkMcpServer: 'owner',
  removeMcpServer: 'owner',

  // Threads
  listThreads: 'viewer',
  createThread: 'viewer',
  getThread: 'threadOwner',
  updateThread: 'threadOwner',
  deleteThread: 'threadOwner',
  listMessages: 'threadOwner',
  listTurns: 'threadOwner',

  // Credits: the way back from a payment page has no credential
  checkoutSuccess: 'anyone',
  checkoutCancel: 'anyone',
  developmentPayment: 'anyone',
  chooseDevelopmentPayment: 'anyone',
  receivePaymentEvent: 'signed',
  receiveStripeEvent: 'signed',
  getBilling: 'viewer',
  listBillingEntries: 'viewer',
  exportBillingEntries: 'viewer',
  listCheckouts: 'viewer',
  topUpBilling: 'editor',
  setUpBilling: 'owner',
  setAutoTopUp: 'owner',
  setSpendingCaps: 'owner',

  // Drive: what is in a thread's container is its owner's alone, whatever the role; the routes ask, by auth/authorizeDrive.ts
  getDrive: 'viewer',
  uploadFiles: 'editor',
  listDriveItems: 'viewer',
  createDriveFolder: 'editor',
  getDriveItem: 'viewer',
  updateDriveItem: 'editor',
  deleteDriveItem: 'editor',
  restoreDriveItem: 'editor',
  getDriveContent: 'viewer',
  getDriveUrl: 'viewer',
  listDriveVersions: 'viewer',
  restoreDriveVersion: 'editor',
  listTrash: 'viewer',
  emptyTrash: 'editor',
  searchDrive: 'viewer',
  getDriveTree: 'viewer',
  createUpload: 'editor',
  getUpload: 'editor',
  completeUpload: 'editor',
  abortUpload: 'editor',
  uploadThreadFiles: 'viewer',
  getThreadFileUrl: 'viewer',

  // Operations
  getOperation: 'self',
  cancelOperation: 'self',

  // Service
  getHealth: 'anyone',
  getReadiness: 'anyone',
  getMetrics: 'operator',
  getContractYaml: 'anyone',
  getContractJson: 'anyone',
  getReferencePage: 'anyone',
} as const satisfies Record<OperationId, Access>;

/** The row of an operation. Throws when it has none: an operation that nobody thought about is open to nobody. */
export function accessOf(operationId: string): Access {
  const table: Readonly<Record<string, Access>> = accessTable;
  const access = Object.hasOwn(table, operationId) ? table[operationId] : undefined;
  if (access === undefined)
    throw new Error(`api/frame/auth/access.ts has no row for ${operationId}: add who may call it.`);
  return access;
}

/** The role that an access asks of a caller in a space; undefined where it is none of that kind. */
export function roleOf(access: Access, isAboutCaller = false): Role | undefined {
  if (access === 'ownerOrSelf') return isAboutCaller ? 'viewer' : 'owner';
  return access === 'viewer' || access === 'editor' || access === 'owner' ? access : undefined;
}
