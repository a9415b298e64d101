/**
 * `it` and `test` for tests that `npm test` leaves out while their area is unchanged, since other tests cover the same
 * in less time. `npm run test:long` and `npm test -- test/FILE` run them. `runs` is true when they run.
 */
export function inFull(area: string) {
  // Set by `jest.config.mjs`.
  const areas = process.env.ATRIUM_TEST_IN_FULL?.split(',') ?? [];
  const runs = areas.includes('*') || areas.includes(area);
  return { it: runs ? it : it.skip, test: runs ? test : test.skip, runs };
}
