/**
 * The size of a test: `small` in `npm test`, `full` in `npm run test:long`. A variable overrides both, to make the test
 * larger: with less than `small`, it may fail.
 */
export function sizeOf(variable: string, small: number, full = small): number {
  const { [variable]: text, ATRIUM_TEST_SCOPE: scope } = process.env;
  if (text !== undefined) return Number(text);
  return scope === 'long' ? full : small;
}
