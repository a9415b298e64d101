/** The request itself has the effect; only cleaning up is left. */
export const staysDeleted = 'What was deleted stays deleted.';
