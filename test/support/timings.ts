import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/**
 * Writes `timings.json` from a run's results: `npm test -- --json --outputFile=results.json`, then
 * `npx node test/support/timings.ts results.json`.
 */
const root = join(import.meta.dirname, '..', '..');
const results = JSON.parse(readFileSync(process.argv[2] ?? 'results.json', 'utf8')) as {
  testResults: { name: string; startTime: number; endTime: number }[];
};
const seconds = results.testResults
  .map(({ name, startTime, endTime }) => [relative(root, name), Math.round((endTime - startTime) / 1_000)] as const)
  .sort(([, a], [, b]) => b - a);
writeFileSync(join(import.meta.dirname, 'timings.json'), `${JSON.stringify(Object.fromEntries(seconds), null, 2)}\n`);
