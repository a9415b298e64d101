import { setTimeout as delay } from 'node:timers/promises';
import type { Reached } from '../launcherKit.ts';

interface Waiting<Item> {
  item: Item;
  resolve(reached: Reached): void;
}

/**
 * Starts one workflow for items that arrive within `everyMs` of each other, with at most `most` items. An item that
 * arrives alone is started at once.
 */
export function gathered<Item>(
  start: (items: [Item, ...Item[]]) => Promise<Reached>,
  { everyMs, most }: { everyMs: number; most: number },
): (item: Item) => Promise<Reached> {
  const waiting: Waiting<Item>[] = [];
  let isResting = false;

  async function startAll(): Promise<void> {
    isResting = true;
    for (let batch = waiting.splice(0, most); batch.length > 0; batch = waiting.splice(0, most)) {
      const [first, ...others] = batch.map(({ item }) => item) as [Item, ...Item[]];
      // Starts never reject.
      void start([first, ...others]).then((reached) => {
        for (const { resolve } of batch) resolve(reached);
      });
      await delay(everyMs);
    }
    isResting = false;
  }

  return (item) =>
    new Promise((resolve) => {
      waiting.push({ item, resolve });
      if (!isResting) void startAll();
    });
}
