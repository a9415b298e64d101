import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what in chat. A viewer may ask; mode `work` changes things, and needs an editor. */
export const access = {
  listChatModels: 'signedIn',
  listModels: 'signedIn',
  streamChat: 'viewer',
  resumeThreadStream: 'threadOwner',
  getTurn: 'threadOwner',
  getTurnTimeline: 'threadOwner',
  streamTurn: 'threadOwner',
  stopTurn: 'threadOwner',
  getChatSettings: 'viewer',
  putChatSettings: 'editor',
  decideToolCall: 'threadOwner',
  listThreads: 'viewer',
  searchThreads: 'viewer',
  createThread: 'viewer',
  getThread: 'threadOwner',
  updateThread: 'threadOwner',
  deleteThread: 'threadOwner',
  listMessages: 'threadOwner',
  listTurns: 'threadOwner',
  listThreadShares: 'threadOwner',
  shareThread: 'threadOwner',
  revokeThreadShare: 'threadOwner',
  readSharedThread: 'anyone',
} as const satisfies AccessRows;
