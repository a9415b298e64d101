/**
 * Tests at full size, which `npm test` leaves out to stay short: floods, fuzzing, and kills that other tests cover on a
 * small scale. `npm run test:long` runs them, and so does `npm test -- FILE` if it names one.
 */
export const longTests = [
  'test/activities/billing/shuffledEvents.test.ts',
  'test/activities/tools/extremes.test.ts',
  'test/api/frame/fuzz.test.ts',
  'test/api/frame/oddRequests.test.ts',
  'test/chaos/browserLostHost.test.ts',
  'test/chaos/drive.test.ts',
  'test/chaos/gitLostHost.test.ts',
  'test/chaos/gitTree.test.ts',
  'test/chaos/lostWorkers.test.ts',
  'test/chaos/redis.test.ts',
  'test/chaos/toolOutages.test.ts',
  'test/integrations/git/attacks.test.ts',
  'test/integrations/git/resume.test.ts',
  'test/integrations/git/trees.test.ts',
  'test/support/sharedProducts.test.ts',
  'test/workflows/computers/realHost.test.ts',
];

/** Tests that `npm test` runs on a small scale, and `npm run test:long` at full size. */
export const largerTests = [
  'test/chaos/kill.test.ts',
  'test/chaos/powerCut.test.ts',
  'test/integrations/computers/terminalFuzz.test.ts',
];

/** Jest's patterns for files that a run leaves out. Empty if the command line names files. */
export function leftOut(argv) {
  const areNamed = argv.some((argument) => argument.startsWith('test/'));
  return areNamed ? [] : longTests.map((file) => `/${file.replaceAll('.', '\\.')}$`);
}
