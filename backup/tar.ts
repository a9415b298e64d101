import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isDiskFull } from '../integrations/computers/host/disks/disks.ts';
import { BackupError } from './errors.ts';

const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' };
const isGnu = process.platform === 'linux';
/** Sorted, so that unchanged files end up in the same pieces. Files that cannot be read are left out. */
const packOptions = isGnu ? ['--sort=name', '--sparse', '--one-file-system', '--ignore-failed-read'] : [];
const unpackOptions = isGnu ? ['--no-same-owner', '--delay-directory-restore'] : ['-o'];
/** GNU tar's exit code if a file changed while it was read. */
const changed = 1;
const unread = /: Warning: Cannot (open|read|stat|savedir)/;
const complaintBytes = 65_536;
const complaintsShown = 3;
const lineEnds = 100;
/** GNU tar's message if the disk fills up during a write. */
const cutShort = /Wrote only \d+ of \d+ bytes/;
/** Error codes of a pipe whose reader has ended. */
const brokenPipe: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE']);

/** tar could not read or write all that it should. */
export class TarFailed extends BackupError {
  readonly isDiskFull: boolean;

  constructor({ code, complaint, isDiskFull }: Ended) {
    super(`tar failed (${code}): ${complaint}`);
    this.isDiskFull = isDiskFull;
  }
}

interface Ended {
  code: number | string;
  /** The first lines of its standard error. */
  complaint: string;
  isDiskFull: boolean;
}

/**
 * Packs everything in a folder as bytes, with names and permissions. Keeps links as links, and follows none out of the
 * folder. Calls `leaveOut` for each file that cannot be read.
 */
export async function* pack(
  folder: string,
  signal: AbortSignal,
  leaveOut: () => void = () => undefined,
): AsyncGenerator<Buffer> {
  const child = spawn('tar', [...packOptions, '--numeric-owner', '-cf', '-', '-C', folder, '.'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environment,
    signal,
    killSignal: 'SIGKILL',
  });
  const ended = endOf(child);
  createInterface({ input: child.stderr }).on('line', (line) => unread.test(line) && leaveOut());
  try {
    yield* child.stdout as AsyncIterable<Buffer>;
    const end = await ended;
    if (end.code !== 0 && !(isGnu && end.code === changed)) throw new TarFailed(end);
  } finally {
    child.kill('SIGKILL');
    await ended.catch(() => undefined);
  }
}

/**
 * Unpacks what {@link pack} gave into an empty folder, as our user. On failure throws {@link TarFailed} and leaves what
 * it could unpack.
 */
export async function unpack(folder: string, bytes: AsyncIterable<Buffer>, signal: AbortSignal): Promise<void> {
  const child = spawn('tar', [...unpackOptions, '-xpf', '-', '-C', folder], {
    stdio: ['pipe', 'ignore', 'pipe'],
    env: environment,
    signal,
    killSignal: 'SIGKILL',
  });
  const ended = endOf(child);
  ended.catch(() => undefined);
  try {
    // If tar has ended, its own message says more than a broken pipe.
    await pipeline(Readable.from(bytes), child.stdin, { signal }).catch((error: NodeJS.ErrnoException) => {
      if (!brokenPipe.has(error.code)) throw error;
    });
    const end = await ended;
    if (end.code !== 0) throw new TarFailed(end);
  } finally {
    child.kill('SIGKILL');
  }
}

/** Keeps the beginning and the end of a line, which has the reason. A path in between can be of any length. */
function shortened(line: string): string {
  return line.length <= 2 * lineEnds ? line : `${line.slice(0, lineEnds)} … ${line.slice(-lineEnds)}`;
}

function endOf(child: ReturnType<typeof spawn>): Promise<Ended> {
  let complaint = '';
  let isFull = false;
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(0, complaintBytes);
    isFull ||= isDiskFull(text) || cutShort.test(text);
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      resolve({
        code: code ?? signal ?? '?',
        complaint: complaint.trim().split('\n').slice(0, complaintsShown).map(shortened).join('; '),
        isDiskFull: isFull,
      });
    });
  });
}
