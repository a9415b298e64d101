/** The request itself has taken effect. Only the cleanup is left. */
export const staysDeleted = 'What was deleted stays deleted.';
