import { z } from 'zod';
import { integer } from './kinds.ts';

export const readerSettings = z.object({
  ATRIUM_DOCUMENT_CPU_SECONDS: integer(1, 600).optional(),
});

/** Reading web pages, PDFs and YAML: the CPU time for one document, where it is not the default of its kind. */
export function readersConfig(env: z.infer<typeof readerSettings>) {
  const seconds = env.ATRIUM_DOCUMENT_CPU_SECONDS;
  return Object.freeze({ processorMs: seconds === undefined ? undefined : seconds * 1_000 });
}
