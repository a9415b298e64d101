/**
 * How large a test is: small in `npm test`, and as large as a variable says in the long runs that CONTRIBUTING.md
 * names.
 */
export function sizeOf(variable: string, small: number): number {
  const text = process.env[variable];
  return text === undefined ? small : Number(text);
}
