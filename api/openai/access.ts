import type { AccessRows } from '../frame/auth/access.ts';

/** The space of a completion is its thread's, or named in a header: the route asks for the role there. */
export const access = {
  listOpenAiModels: 'signedIn',
  getOpenAiModel: 'signedIn',
  createChatCompletion: 'signedIn',
} as const satisfies AccessRows;
