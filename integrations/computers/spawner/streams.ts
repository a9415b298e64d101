import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { spawner } from './spawner.ts';

interface ProgramOptions {
  /** Kills the program. Its reason becomes the error of the program's stream and end. */
  signal: AbortSignal;
  /** The command that starts the program, such as {@link patiently}. */
  through?: readonly string[] | undefined;
  /** Called with each line of the program's standard error. */
  complain?: (line: string) => void;
  /** The reason of a failure, which stays in its message although the program writes more lines after it. */
  reason?: RegExp;
  /** Exit codes other than 0 that are no failure. */
  fineCodes?: readonly number[];
}

/** Starts a program that lets all others go first. On Linux that holds for its disk accesses too. */
export const patiently = ['nice', '-n', '19'];

/** A running program. */
export interface Program {
  /** Its input and output. Destroying it before its end kills the program. */
  stream: Socket;
  /** Rejects if it fails. */
  ended: Promise<void>;
}

/** The message has the last line of the program's standard error, or the line that gives the reason. */
export class ProgramFailed extends Error {
  override readonly name = 'ProgramFailed';
  /** Its exit code or signal, such as ` (2)`. */
  readonly how: string;

  constructor(file: string, how: string, complaint: string) {
    super(`${file} failed${how}: ${complaint}`);
    this.how = how;
  }
}

/** Starts a program of the system in the spawner, with one stream for its input and output. */
export async function openProgram(
  file: string,
  args: readonly string[],
  { signal, through = [], complain, reason, fineCodes = [] }: ProgramOptions,
): Promise<Program> {
  signal.throwIfAborted();
  const opened = Promise.withResolvers<Socket>();
  const ended = Promise.withResolvers<void>();
  let complaint = '';
  const close = (error: Error) => {
    opened.promise.then(
      (stream) => stream.destroy(error),
      () => undefined,
    );
  };
  const end = (failure?: ProgramFailed) => {
    signal.removeEventListener('abort', kill);
    if (failure === undefined) return ended.resolve();
    const error = signal.aborted ? signal.reason : failure;
    opened.reject(error);
    ended.reject(error);
    close(error);
  };
  const command = [...through, file, ...args];
  const program = spawner().ask({ do: 'stream', command }, (news, socket) => {
    if (news.news === 'report') {
      if (reason?.test(complaint) !== true) complaint = news.line;
      complain?.(news.line);
    } else if (news.news === 'opened' && socket !== undefined) opened.resolve(socket);
    else if (news.news === 'failed') end(new ProgramFailed(file, '', news.reason));
    else if (news.news === 'ended') {
      const isFine = news.code === 0 || fineCodes.includes(news.code ?? -1);
      end(isFine ? undefined : new ProgramFailed(file, news.how, complaint));
    }
  });
  const kill = () => {
    program.tell({ do: 'kill' });
    close(signal.reason);
  };
  signal.addEventListener('abort', kill, { once: true });
  ended.promise.catch(() => undefined); // its user may only await the stream
  const stream = await opened.promise;
  stream.on('error', () => undefined); // its user sees it too
  // A program may close its output before it ends.
  stream.once('close', () => stream.readableEnded || program.tell({ do: 'kill' }));
  stream.write('\n'); // the program begins
  return { stream, ended: ended.promise };
}

/** Yields what a program prints. Throws if the program fails. */
export async function* outputOf({ stream, ended }: Program): AsyncGenerator<Buffer> {
  try {
    yield* stream as AsyncIterable<Buffer>;
    await ended;
  } finally {
    stream.destroy();
    await ended.catch(() => undefined);
  }
}

/** Error codes of a stream whose program has ended. */
const brokenStream: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE']);

/** Gives a program its input, and waits for its end. Throws the program's failure, or that of the bytes. */
export async function feed({ stream, ended }: Program, bytes: AsyncIterable<Buffer>): Promise<void> {
  stream.resume(); // so that its end is noticed
  const fed = pipeline(Readable.from(bytes), stream).catch((error: NodeJS.ErrnoException) => {
    // If the program has ended, its own message says more than a broken stream.
    if (!brokenStream.has(error.code)) throw error;
  });
  fed.catch(() => undefined); // awaited below
  try {
    // The bytes may never come, while the program has failed.
    await Promise.race([fed, ended.then(() => fed)]);
    await ended;
  } finally {
    stream.destroy();
    await ended.catch(() => undefined);
  }
}
