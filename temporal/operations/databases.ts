import type { ObjectOperation, OperationDefinition } from './operation.ts';

const definition: ObjectOperation = {
  object: 'database',
  isUrgent: false,
  scope: 'databases:write',
  failures: { DATABASE_SERVER_UNAVAILABLE: 'unavailable', DATABASE_RESTORE_FAILED: 'unprocessable' },
  notCancellable: 'This operation cannot be cancelled. Delete or restore the database instead.',
};

/** Done by the workflow of the database, which makes the server match the row. */
export const databaseOperations = {
  createDatabase: definition,
  deleteDatabase: definition,
  restoreDatabase: definition,
  purgeDatabase: definition,
  rotateDatabase: definition,
  compactDatabase: definition,
  connectApp: definition,
  disconnectApp: definition,
} satisfies Record<string, OperationDefinition>;
