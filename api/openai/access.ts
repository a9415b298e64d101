import type { AccessRows } from '../frame/auth/access.ts';

/** A completion's space is that of its thread, or is named in a header, so the route checks the role there. */
export const access = {
  listOpenAiModels: 'signedIn',
  getOpenAiModel: 'signedIn',
  createChatCompletion: 'signedIn',
} as const satisfies AccessRows;
