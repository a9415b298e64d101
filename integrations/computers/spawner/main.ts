import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { environment, runHere } from '../system/programs.ts';
import type { SpawnerNews, SpawnerOrder } from './spawner.ts';

/**
 * The spawner: a small process that starts programs for its host. Forking a process blocks it while the kernel copies
 * its page tables (87 ms at 320 MB), and the host may share its process with the API. The spawner ends with its host.
 */
const holders = new Map<number, ChildProcess>();
/** Other running programs, with the controllers that kill them. */
const running = new Map<number, AbortController>();

process.on('message', (order: SpawnerOrder) => take(order));
// A signal to the whole service must not end us: the host still clears up with our help.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);
process.on('disconnect', () => process.exit(0));

function tell(news: SpawnerNews): void {
  process.send?.(news, () => undefined); // the host may have ended
}

function take(order: SpawnerOrder): void {
  if (order.do === 'run') run(order);
  else if (order.do === 'stream') stream(order);
  else if (order.do === 'hold') hold(order);
  else if (order.do === 'send') holders.get(order.id)?.stdin?.write(`${order.line}\n`);
  else if (order.do === 'letGo') for (const pipe of pipesOf(order.id)) pipe.destroy();
  else {
    holders.get(order.id)?.kill('SIGKILL');
    running.get(order.id)?.abort();
  }
}

function run({ id, file, args, timeoutMs }: Extract<SpawnerOrder, { do: 'run' }>): void {
  const killed = new AbortController();
  running.set(id, killed);
  runHere(file, args, { timeoutMs, signal: killed.signal })
    .then(
      (output) => tell({ id, news: 'ran', output }),
      (error: Error) => tell({ id, news: 'failed', reason: error.message }),
    )
    .finally(() => running.delete(id));
}

/**
 * What Node makes as a child's input is a socket, so the program can print into it too. The host gets the other end,
 * and the program's bytes do not pass through this process. The program begins with the host's first line, because a
 * stream of a program that has ended already cannot be handed over.
 */
function stream({ id, command }: Extract<SpawnerOrder, { do: 'stream' }>): void {
  const child = spawn('/bin/sh', ['-c', 'read -r _ && exec "$@" >&0', 'sh', ...command], {
    cwd: '/',
    env: environment,
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  const killed = new AbortController();
  killed.signal.addEventListener('abort', () => child.kill('SIGKILL'));
  running.set(id, killed);
  const over = (how: string, code: number | null) => {
    if (running.delete(id)) tell({ id, news: 'ended', how, code });
  };
  child.once('error', (error) => over(` (${error.message})`, null));
  child.once('close', (code, signal) => over(` (${signal ?? code})`, code));
  if (child.pid === undefined) return;
  createInterface({ input: child.stderr }).on('line', (line) => tell({ id, news: 'report', line }));
  process.send?.({ id, news: 'opened' } satisfies SpawnerNews, child.stdin as Socket);
}

function hold({ id, file, args, log }: Extract<SpawnerOrder, { do: 'hold' }>): void {
  let descriptor: number;
  try {
    descriptor = openSync(log, 'a', 0o600);
  } catch (error) {
    // A failed start must not end the other programs here.
    tell({ id, news: 'ended', how: ` (${(error as Error).message})`, code: null });
    return;
  }
  const child = spawn(file, args, {
    detached: true,
    cwd: '/',
    env: {},
    stdio: ['pipe', descriptor, descriptor, 'pipe'],
  });
  closeSync(descriptor);
  holders.set(id, child);
  for (const pipe of pipesOf(id)) pipe.on('error', () => undefined);
  if (child.pid !== undefined) tell({ id, news: 'started', pid: child.pid });
  child.once('error', (error) => end(id, ` (${error.message})`, null));
  // `close` comes after the last report.
  child.once('close', (code, signal) => end(id, ` (${signal ?? `code ${code}`})`, code));
  const lines = createInterface({ input: child.stdio[3] as Readable });
  lines.on('line', (line) => tell({ id, news: 'report', line }));
}

function end(id: number, how: string, code: number | null): void {
  if (holders.delete(id)) tell({ id, news: 'ended', how, code });
}

function pipesOf(id: number): (Readable | Writable)[] {
  const child = holders.get(id);
  return [child?.stdin, child?.stdio[3] as Readable | undefined].filter((pipe) => pipe != null);
}
