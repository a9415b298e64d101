// A plain module: Jest loads it by itself.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import Sequencer from '@jest/test-sequencer';

/** Seconds that the longest files take, for a clone that has measured nothing itself. `timings.ts` writes them. */
const timings = JSON.parse(readFileSync(new URL('./timings.json', import.meta.url), 'utf8'));

/**
 * The longest files first, so that no worker is left with one of them at the end; and shards that take equally long.
 */
export default class LongestFirst extends Sequencer {
  time(test) {
    const file = relative(test.context.config.rootDir, test.path);
    return super.time(test) ?? (timings[file] ?? 0) * 1_000;
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
