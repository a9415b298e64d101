/**
 * How large a test is: small in `npm test`, and as large as a variable says in the long runs that CONTRIBUTING.md
 * names. `full` is for `npm run test:long`, where the file is named in `longTests.mjs`.
 */
export function sizeOf(variable: string, small: number, full = small): number {
  const { [variable]: text, ATRIUM_TEST_SCOPE: scope } = process.env;
  if (text !== undefined) return Number(text);
  return scope === 'long' ? full : small;
}
