/** The request itself has taken effect. Only the cleanup is left. */
export const staysDeleted = 'A deletion cannot be cancelled.';
