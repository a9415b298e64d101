/** The texts and numbers anywhere in a JSON value, as text: what of it could be recognised elsewhere. */
export function leavesOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value === 'number') return [String(value)];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(leavesOf);
}
