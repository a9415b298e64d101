import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { runHere } from '../system/programs.ts';
import type { SpawnerNews, SpawnerOrder } from './spawner.ts';

/**
 * The spawner: a small process that starts what its host asks for. To fork a process takes time for every page of its
 * memory, in which it does nothing else, and a host may be one with the API and the workers. It ends with its host.
 */
const holders = new Map<number, ChildProcess>();
/** Other programs, each by what kills it. */
const running = new Map<number, AbortController>();

process.on('message', (order: SpawnerOrder) => take(order));
// What ends a service as a whole comes to us as well, and its host has something to clear up by then.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);
process.on('disconnect', () => process.exit(0));

function tell(news: SpawnerNews): void {
  process.send?.(news);
}

function take(order: SpawnerOrder): void {
  if (order.do === 'run') run(order);
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

function hold({ id, file, args, log }: Extract<SpawnerOrder, { do: 'hold' }>): void {
  let descriptor: number;
  try {
    descriptor = openSync(log, 'a', 0o600);
  } catch (error) {
    // All that goes on here must not end with it.
    tell({ id, news: 'ended', how: ` (${(error as Error).message})` });
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
  child.once('error', (error) => end(id, ` (${error.message})`));
  // After all that it has reported.
  child.once('close', (code, signal) => end(id, ` (${signal ?? `code ${code}`})`));
  const lines = createInterface({ input: child.stdio[3] as Readable });
  lines.on('line', (line) => tell({ id, news: 'report', line }));
}

function end(id: number, how: string): void {
  if (holders.delete(id)) tell({ id, news: 'ended', how });
}

function pipesOf(id: number): (Readable | Writable)[] {
  const child = holders.get(id);
  return [child?.stdin, child?.stdio[3] as Readable | undefined].filter((pipe) => pipe != null);
}
