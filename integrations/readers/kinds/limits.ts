/** The kinds of documents that are read in a separate process. */
export type Readable = 'page' | 'pdf' | 'yaml';

export interface ReadLimits {
  /** CPU time per document, so that a busy machine does not make a document too costly. */
  processorMs: number;
  /** How long a document may take once reading begins. */
  timeMs: number;
  /** How much memory the process may hold. */
  residentBytes: number;
}

const residentBytes = 512 * 1_048_576;

export const readLimits: Record<Readable, ReadLimits> = {
  page: { processorMs: 10_000, timeMs: 30_000, residentBytes },
  pdf: { processorMs: 20_000, timeMs: 45_000, residentBytes },
  yaml: { processorMs: 5_000, timeMs: 30_000, residentBytes },
};

/** A document's text beyond this is left out: it is more than any prompt takes. */
export const maxTextCharacters = 2_000_000;
