import { z } from 'zod';
import { integer } from './kinds.ts';

export const readerSettings = z.object({
  ATRIUM_DOCUMENT_CPU_SECONDS: integer(1, 600).optional(),
});

/** CPU time to read one document (web page, PDF, YAML). Undefined means the default of its kind. */
export function readersConfig(env: z.infer<typeof readerSettings>) {
  const seconds = env.ATRIUM_DOCUMENT_CPU_SECONDS;
  return Object.freeze({ processorMs: seconds === undefined ? undefined : seconds * 1_000 });
}
