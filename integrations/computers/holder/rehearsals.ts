/** The folder beside the holder’s program in which spare holders rehearse, each in one of its own. */
export const rehearsals = 'rehearsals';
