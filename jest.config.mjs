import { areasInFull, filesInFull, leftOut } from './test/support/longTests.mjs';

const isLong = process.env.ATRIUM_TEST_SCOPE === 'long';
// Other people's programs, which take gigabytes (`npm run test:clients`).
const isPrograms = process.env.ATRIUM_TEST_SCOPE === 'clients';
const programs = 'test/clients/programs';
const areas = areasInFull(process.argv);
// For the workers (`test/support/inFull.ts`).
process.env.ATRIUM_TEST_IN_FULL = areas.join(',');

/** Workers load the test files as Node loads any module (`test/support/jest/`), and each keeps what it has loaded. */
export default {
  roots: ['<rootDir>/test'],
  testEnvironment: '<rootDir>/test/support/jest/environment.mjs',
  testMatch: filesOf().map((file) => `<rootDir>/${file}`),
  testPathIgnorePatterns: ['/node_modules/', ...(isPrograms ? [] : [`/${programs}/`]), ...leftOut(areas)],
  transform: {},
  runner: '<rootDir>/test/support/jest/runner.mjs',
  runtime: '<rootDir>/test/support/jest/runtime.mjs',
  // Plain modules, which Node loads by itself: each only calls its TypeScript neighbour.
  globalSetup: '<rootDir>/test/support/globalSetup.mjs',
  globalTeardown: '<rootDir>/test/support/globalTeardown.mjs',
  testSequencer: '<rootDir>/test/support/sequencer.mjs',
  // Four on two cores: a file waits for nearly half of its time, for a provider's pauses, a heartbeat or a start.
  maxWorkers: 4,
  // A deadline is against hanging, not for speed: machines differ, and a slow one must not fail.
  testTimeout: 180_000,
};

function filesOf() {
  if (isPrograms) return [`${programs}/*.test.ts`];
  return isLong ? filesInFull() : ['test/**/*.test.ts'];
}
