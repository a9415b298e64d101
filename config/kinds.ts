import { z } from 'zod';

/** What is allowed, for kinds that do not say it themselves. */
export function describeAllowed(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_value':
      return `one of ${issue.values.join(', ')}`;
    case 'too_small':
      return `at least ${issue.minimum}${issue.origin === 'string' ? ' characters' : ''}`;
    case 'too_big':
      return `at most ${issue.maximum}${issue.origin === 'string' ? ' characters' : ''}`;
    case 'invalid_format':
      return issue.format === 'url' ? 'an address like https://host:port' : undefined;
    default:
      return undefined;
  }
}

export const bool = z.enum(['true', 'false', '1', '0']).transform((value) => value === 'true' || value === '1');
export const list = z.string().transform((value) =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
export const integer = (min: number, max: number) => {
  const said = `a whole number from ${min} to ${max}`;
  return z.coerce.number(said).int(said).min(min, said).max(max, said);
};
/**
 * An address, checked by its form. The error names only the form, because the value may contain a password. Also
 * rejects what `URL` accepts but nothing can use.
 */
const address = (schemes: RegExp, form: string, isWhole: (url: URL) => boolean = () => true) =>
  z.string().refine((text) => {
    if (!URL.canParse(text)) return false;
    const url = new URL(text);
    return schemes.test(url.protocol) && url.hostname !== '' && areDecodable(url) && isWhole(url);
  }, `an address like ${form}`);
const encoded = 'in which special characters of the password are percent-encoded';

function areDecodable({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

export const webAddress = address(/^https?:$/, 'https://host:port');
export const serverOfDatabases = address(/^mysql:$/, `mysql://user:password@host:3306/, ${encoded}`);
export const databaseAddress = address(
  /^mysql:$/,
  `mysql://user:password@host:3306/database, ${encoded}`,
  ({ pathname }) => /^\/[^/]+$/.test(pathname),
);
export const redisAddress = address(
  /^rediss?:$/,
  `redis://user:password@host:6379 or rediss://…, ${encoded}`,
  ({ pathname }) => /^(\/\d*)?$/.test(pathname),
);
export const mailAddress = address(/^smtps?:$/, `smtp://user:password@host:587 or smtps://…, ${encoded}`);

const amounts = 'a number from 0 to 1000000000';
export const amount = z.coerce.number(amounts).min(0, amounts).max(1_000_000_000, amounts);
