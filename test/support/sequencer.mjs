// A plain module: Jest loads it by itself.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import Sequencer from '@jest/test-sequencer';

/** Seconds that each file takes, for a clone that has measured nothing itself. `timings.ts` writes them. */
const timings = JSON.parse(readFileSync(new URL('./timings.json', import.meta.url), 'utf8'));

/** For a file that is newer than the timings: it may be one of the longest, and loses nothing by an early start. */
const newFileSeconds = 60;

/** How a file asks for the Atrium that it shares with other files (`test/builders/product.ts`). */
const sharing = /buildProduct\((\)|undefined)/;

/**
 * The longest files first, so that no worker is left with one of them at the end; and shards that take equally long.
 * Files that share an Atrium come last. An Atrium without work still takes CPU time, so none should run for the whole
 * run.
 */
export default class LongestFirst extends Sequencer {
  sort(tests) {
    const isSharing = ({ path }) => sharing.test(readFileSync(path, 'utf8'));
    const sorted = super.sort(tests);
    return [...sorted.filter((test) => !isSharing(test)), ...sorted.filter(isSharing)];
  }

  time(test) {
    const file = relative(test.context.config.rootDir, test.path);
    return super.time(test) ?? (timings[file] ?? newFileSeconds) * 1_000;
  }

  shard(tests, { shardIndex, shardCount }) {
    const shards = Array.from({ length: shardCount }, () => ({ tests: [], durationMs: 0 }));
    for (const test of this.sort([...tests].sort((a, b) => (a.path < b.path ? -1 : 1)))) {
      const lightest = shards.reduce((least, shard) => (shard.durationMs < least.durationMs ? shard : least));
      lightest.tests.push(test);
      // A file without a measured time still takes its startup time.
      lightest.durationMs += Math.max(test.duration, 1_000);
    }
    return shards[shardIndex - 1].tests;
  }
}
