import type { AccessRows } from '../frame/auth/access.ts';

/** The space is that of a thread, or is named in a header, so the routes check the role there. */
export const access = {
  listOpenAiModels: 'signedIn',
  getOpenAiModel: 'signedIn',
  createChatCompletion: 'signedIn',
  createEmbeddings: 'signedIn',
  uploadOpenAiFile: 'signedIn',
  listOpenAiFiles: 'signedIn',
  getOpenAiFile: 'viewer',
  getOpenAiFileContent: 'viewer',
  deleteOpenAiFile: 'editor',
} as const satisfies AccessRows;
