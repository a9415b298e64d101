/** What is read in a process of its own. */
export type Readable = 'page' | 'pdf';

export interface ReadLimits {
  /** What the process may compute for a document: a busy machine makes none too costly. */
  processorMs: number;
  /** How long a document may take, once it is its turn. */
  timeMs: number;
  /** What the process may hold in memory. */
  residentBytes: number;
}

const residentBytes = 512 * 1_048_576;

export const readLimits: Record<Readable, ReadLimits> = {
  page: { processorMs: 10_000, timeMs: 30_000, residentBytes },
  pdf: { processorMs: 20_000, timeMs: 45_000, residentBytes },
};

/** The text of a document beyond this is left out: it is more than any prompt takes. */
export const maxTextCharacters = 2_000_000;
