// Plain JavaScript, since Jest loads this module itself.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import Sequencer from '@jest/test-sequencer';

/** Seconds that each file takes, for a clone without measurements of its own. `timings.ts` writes them. */
const timings = JSON.parse(readFileSync(new URL('./timings.json', import.meta.url), 'utf8'));

/** The assumed time of a file without a measurement. It may be one of the longest, and an early start does no harm. */
const newFileSeconds = 60;

/** The call with which a file asks for a shared Atrium (`test/builders/product.ts`). */
const sharing = /buildProduct\((\)|undefined)/;

/**
 * Runs the longest files first, so that no worker ends with one of them, and makes shards of equal duration. Files that
 * share an Atrium come last, since even an idle Atrium takes CPU time and should not run during the whole run.
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
