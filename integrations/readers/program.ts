import { readSync, writeSync } from 'node:fs';
import { readers } from './kinds/kinds.ts';
import { type Answer, answerFrame, type Job } from './wire.ts';

/**
 * The process that reads untrusted documents (readerProcess.ts starts it). It takes one job after the other from its
 * standard input and ends with it. Its answers go to a descriptor that no library writes to.
 */
const input = 0;
const output = 3;

answer({ ready: true });
for (let job = nextJob(); job !== undefined; job = nextJob()) {
  answer({ taken: true });
  answer(await read(job));
}

async function read({ kind, bytes }: Job): Promise<Answer> {
  try {
    const reader = await readers[kind]();
    return { read: await reader(bytes) };
  } catch {
    return { failed: true };
  }
}

function nextJob(): Job | undefined {
  const header = take(4);
  if (header === undefined) return undefined;
  const { kind, size } = JSON.parse(String(take(header.readUInt32BE()))) as { kind: Job['kind']; size: number };
  const bytes = take(size);
  // A plain Uint8Array: the PDF library refuses a Buffer.
  return bytes && { kind, bytes: new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length) };
}

/** Waits for this many bytes; undefined where the input ends before. */
function take(size: number): Buffer | undefined {
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size; ) {
    const count = readSync(input, bytes, at, size - at, null);
    if (count === 0) return undefined;
    at += count;
  }
  return bytes;
}

function answer(said: Answer): void {
  const frame = answerFrame(said);
  for (let at = 0; at < frame.length; ) at += writeSync(output, frame, at);
}
