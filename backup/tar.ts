import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isDiskFull } from '../integrations/computers/host/disks/disks.ts';
import { BackupError } from './errors.ts';

const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' };
const isGnu = process.platform === 'linux';
/** In one order, so that what has not changed is in the same pieces; files that cannot be read are left out. */
const packOptions = isGnu ? ['--sort=name', '--sparse', '--one-file-system', '--ignore-failed-read'] : [];
const unpackOptions = isGnu ? ['--no-same-owner', '--delay-directory-restore'] : ['-o'];
/** Of GNU tar: something changed while it was read. */
const changed = 1;
const unread = /: Warning: Cannot (open|read|stat|savedir)/;
const complaintBytes = 65_536;
const complaintsShown = 3;
const lineEnds = 100;
/** What GNU tar says of a disk that filled up within a write. */
const cutShort = /Wrote only \d+ of \d+ bytes/;
/** Of a pipe whose reader has ended. */
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
  /** Its first lines. */
  complaint: string;
  isDiskFull: boolean;
}

/**
 * All that is in a folder, with names and rights, as bytes. Links are kept as links; nobody is followed out of it.
 * `leaveOut` is told of each file that cannot be read.
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
 * Puts what {@link pack} gave into an empty folder, as us. Throws {@link TarFailed} where it cannot; what could be is
 * there then.
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
    // Where tar has ended, its own words say more than a broken pipe.
    await pipeline(Readable.from(bytes), child.stdin, { signal }).catch((error: NodeJS.ErrnoException) => {
      if (!brokenPipe.has(error.code)) throw error;
    });
    const end = await ended;
    if (end.code !== 0) throw new TarFailed(end);
  } finally {
    child.kill('SIGKILL');
  }
}

/** Its beginning and its end, where the reason is: a path between them can be of any length. */
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
