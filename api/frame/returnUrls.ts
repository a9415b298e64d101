import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { allowedOrigins } from './origins.ts';

/**
 * Where a person may be sent back to: an absolute URL whose origin may call the API. Undefined for anything else. Also
 * rejects what browsers read differently or what misleads the eye: `\`, spaces and control characters, and names or
 * passwords before the host.
 */
export function returnUrlOf(value: string | null | undefined, { http }: Pick<Config, 'http'>): string | undefined {
  if (value == null || !/^https?:\/\/[^\\\p{C}\s]+$/u.test(value) || !URL.canParse(value)) return undefined;
  const { href, origin, username, password } = new URL(value);
  return username === '' && password === '' && allowedOrigins(http)(origin) ? href : undefined;
}

/** The same for a URL that a client sends. Throws 400 `RETURN_URL_NOT_ALLOWED`. */
export function requireReturnUrl(value: string | undefined, config: Pick<Config, 'http'>, pointer: string) {
  const url = returnUrlOf(value, config);
  if (value === undefined || url !== undefined) return url;
  const detail = 'The return URL must be a full URL of this server or of an origin in ATRIUM_CORS_ORIGINS.';
  throw new DomainError('invalid', 'RETURN_URL_NOT_ALLOWED', detail, {
    errors: [{ pointer, detail: 'is not allowed' }],
  });
}
