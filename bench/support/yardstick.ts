import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

const intervalMs = 250;
const rounds = 20;
const text = JSON.stringify(
  Array.from({ length: 200 }, (_, index) => ({
    id: `piece_${index}`,
    text: 'A line of an answer, as long as most of them are. '.repeat(4),
    at: [index, index / 3],
  })),
);

/** Parses, writes and hashes documents. Returns the CPU time of that in milliseconds. */
function fixedWorkMs(): number {
  const before = process.cpuUsage();
  let last = '';
  for (let round = 0; round < rounds; round++) {
    last = createHash('sha256')
      .update(last + JSON.stringify(JSON.parse(text)))
      .digest('hex');
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/**
 * Runs `work`, and beside it a fixed piece of work every 250 ms. `yardstickMs` is the CPU time of such a piece, a few
 * milliseconds. The speed of a machine varies by half from minute to minute, so a figure alone says little.
 */
export async function besideYardstick<T>(work: () => Promise<T>): Promise<{ result: T; yardstickMs: number }> {
  const ended = new AbortController();
  let pieces = 0;
  let totalMs = 0;
  const measure = async () => {
    for (; !ended.signal.aborted; pieces++) {
      totalMs += fixedWorkMs();
      await delay(intervalMs, undefined, { signal: ended.signal }).catch(() => undefined);
    }
  };
  const measuring = measure();
  const result = await work().finally(() => ended.abort());
  await measuring;
  return { result, yardstickMs: totalMs / pieces };
}
