import { largerTests, leftOut, longTests } from './test/support/longTests.mjs';

const isLong = process.env.ATRIUM_TEST_SCOPE === 'long';
const everyTest = ['<rootDir>/test/**/*.test.ts', '<rootDir>/test/**/*.test.tsx'];

/** Tests are ES modules in TypeScript; `npm test` runs Jest with --experimental-vm-modules for that. */
export default {
  testEnvironment: 'node',
  testMatch: isLong ? [...longTests, ...largerTests].map((file) => `<rootDir>/${file}`) : everyTest,
  testPathIgnorePatterns: ['/node_modules/', ...(isLong ? [] : leftOut(process.argv))],
  extensionsToTreatAsEsm: ['.ts', '.tsx'],
  transform: {
    '^.+\\.tsx?$': [
      '@swc/jest',
      {
        jsc: { target: 'es2024', parser: { syntax: 'typescript', tsx: false } },
        module: { type: 'es6' },
        sourceMaps: 'inline',
      },
    ],
  },
  modulePathIgnorePatterns: ['<rootDir>/.atrium/'],
  // Plain modules, which Node loads by itself: each only calls its TypeScript neighbour.
  globalSetup: '<rootDir>/test/support/globalSetup.mjs',
  globalTeardown: '<rootDir>/test/support/globalTeardown.mjs',
  testSequencer: '<rootDir>/test/support/sequencer.mjs',
  // Four on two cores: a file waits for nearly half of its time, for a provider's pauses, a heartbeat or a start.
  maxWorkers: 4,
  // A deadline is against hanging, not for speed: machines differ, and a slow one must not fail.
  testTimeout: 180_000,
};
