import { spawn } from 'node:child_process';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { BackupError } from './errors.ts';

const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' };
const isGnu = process.platform === 'linux';
/** In one order, so that what has not changed is in the same pieces; files that cannot be read are left out. */
const packOptions = isGnu ? ['--sort=name', '--sparse', '--one-file-system', '--ignore-failed-read'] : [];
const unpackOptions = isGnu ? ['--no-same-owner', '--delay-directory-restore'] : ['-o'];
/** Of GNU tar: something changed while it was read. */
const changed = 1;
const complaintBytes = 2_000;

/** All that is in a folder, with names and rights, as bytes. Links are kept as links; nobody is followed out of it. */
export async function* pack(folder: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  const child = spawn('tar', [...packOptions, '--numeric-owner', '-cf', '-', '-C', folder, '.'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environment,
    signal,
    killSignal: 'SIGKILL',
  });
  const ended = endOf(child);
  try {
    yield* child.stdout as AsyncIterable<Buffer>;
    const { code, complaint } = await ended;
    if (code !== 0 && !(isGnu && code === changed)) throw new BackupError(`tar failed (${code}): ${complaint}`);
  } finally {
    child.kill('SIGKILL');
    await ended.catch(() => undefined);
  }
}

/** Puts what {@link pack} gave into an empty folder, as us. */
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
      if (error.code !== 'EPIPE') throw error;
    });
    const { code, complaint } = await ended;
    if (code !== 0) throw new BackupError(`tar failed (${code}): ${complaint}`);
  } finally {
    child.kill('SIGKILL');
  }
}

function endOf(child: ReturnType<typeof spawn>): Promise<{ code: number | string; complaint: string }> {
  let complaint = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-complaintBytes);
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      resolve({ code: code ?? signal ?? '?', complaint: complaint.trim().split('\n').at(-1) ?? '' });
    });
  });
}
