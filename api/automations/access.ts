import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what. An automation acts as its author, in their own thread: nobody else may change or start it. */
export const access = {
  listAutomations: 'editor',
  createAutomation: 'editor',
  getAutomation: 'editorsOwn',
  updateAutomation: 'editorsOwn',
  deleteAutomation: 'editorsOwn',
  runAutomation: 'editorsOwn',
  listAutomationRuns: 'editorsOwn',
  renewAutomationSecret: 'editorsOwn',
  receiveAutomationDelivery: 'signed',
} as const satisfies AccessRows;
