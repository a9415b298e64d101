import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

export interface PdfJob {
  bytes: Uint8Array;
  /** Pages beyond these are not read. */
  maxCharacters: number;
}

export interface PdfText {
  /** The text of each page that was read, in order. */
  pages: string[];
  pageCount: number;
}

const timeoutMs = 20_000;
const maxMemoryMiB = 512;

const program = new URL('./pdfWorker.ts', import.meta.url);

/**
 * The text of a PDF; undefined for one that cannot be read: broken, encrypted, or too much for its share of time and memory. It is
 * read in a thread, so that no document holds up the turns of others.
 */
export async function readPdfText(job: PdfJob): Promise<PdfText | undefined> {
  const worker = new Worker(program, {
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: maxMemoryMiB },
  });
  try {
    worker.postMessage(job);
    const [text] = (await once(worker, 'message', { signal: AbortSignal.timeout(timeoutMs) })) as [PdfText];
    return text;
  } catch {
    return undefined;
  } finally {
    await worker.terminate();
  }
}
