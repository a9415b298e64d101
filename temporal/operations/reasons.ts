/** Its effect is there with the request, and what is left is cleaning up. */
export const staysDeleted = 'What was deleted stays deleted.';
