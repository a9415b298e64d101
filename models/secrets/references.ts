import { DomainError } from '../../base/errors.ts';

/** How a tool's input names a secret. The model writes the id, and only the tool gets the value. */
export interface SecretReference {
  $secret: string;
}

/**
 * Replaces each `{"$secret": "<secretId>"}` in a tool's input with its value. `use` returns the values that may be
 * used. Throws 422 `UNKNOWN_SECRET` when one is missing.
 */
export async function resolveSecretReferences(
  input: unknown,
  use: (ids: readonly string[]) => Promise<ReadonlyMap<string, unknown>>,
): Promise<unknown> {
  const ids = [...new Set(referencesIn(input))];
  if (ids.length === 0) return input;
  const values = await use(ids);
  const missing = ids.find((id) => !values.has(id));
  if (missing !== undefined) {
    throw new DomainError(
      'unprocessable',
      'UNKNOWN_SECRET',
      `This turn has no secret ${missing.slice(0, 60)}, or the secret has expired. Ask the user for it again.`,
    );
  }
  return fill(input, values);
}

/** Whether the input has a reference anywhere. */
export function namesSecrets(input: unknown): boolean {
  return referencesIn(input).length > 0;
}

function referencesIn(value: unknown): string[] {
  if (isReference(value)) return [value.$secret];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(referencesIn);
}

function fill(value: unknown, values: ReadonlyMap<string, unknown>): unknown {
  if (isReference(value)) return values.get(value.$secret);
  if (Array.isArray(value)) return value.map((item) => fill(item, values));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, fill(child, values)]));
}

/** An object with that one field. An object with more fields is left to the tool. */
function isReference(value: unknown): value is SecretReference {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const keys = Object.keys(value);
  return keys.length === 1 && keys[0] === '$secret' && typeof (value as SecretReference).$secret === 'string';
}
