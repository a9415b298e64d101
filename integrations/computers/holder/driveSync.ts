import { askSocket } from '../drives/askSocket.ts';

/** How long one request may wait. */
const timeoutMs = 5_000;
/** How much later the daemon has to answer. */
const marginMs = 500;
/** How long the end of a process waits at most, while ever more of its files get into the drive. */
const mostMs = 60_000;
const maxAnswerBytes = 64 * 1_024;

/**
 * Settles when all that programs of the computer have written is in the drive, or when it gets no further. Never
 * rejects: the files get there later, and the computer's `drive` says so.
 */
export async function driveSynced(socketPath: string): Promise<void> {
  const until = Date.now() + mostMs;
  for (let before = Number.POSITIVE_INFINITY; Date.now() < until; ) {
    const pending = await sync(socketPath).catch(() => undefined);
    if (pending === undefined || pending === 0 || pending >= before) return;
    before = pending;
  }
}

/** How long the start of a process waits at most. The daemon gives up before. */
const refreshMs = 400;

/**
 * Settles when the drive has what was in it at the call, or shortly after. Never rejects: without an answer programs
 * see the drive as it was.
 */
export async function driveRefreshed(socketPath: string): Promise<void> {
  const limits = { timeoutMs: refreshMs, maxBytes: maxAnswerBytes };
  await askSocket(socketPath, { method: 'POST', path: '/refresh' }, limits).catch(() => undefined);
}

/** Returns how many files are not in the drive yet. */
async function sync(socketPath: string): Promise<number> {
  const limits = { timeoutMs: timeoutMs + marginMs, maxBytes: maxAnswerBytes };
  const order = { method: 'POST', path: '/sync', json: { timeoutMs } };
  return (await askSocket<{ pendingFiles: number }>(socketPath, order, limits)).pendingFiles;
}
