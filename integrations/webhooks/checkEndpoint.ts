import { DomainError } from '../../models/errors.ts';
import type { EgressGuard, EgressOwner } from '../egress/guard.ts';

/**
 * Throws 422 `WEBHOOK_URL_INVALID` for an address that the space may not reach, and for one without TLS, unless the
 * operator has made an exception. A name that is unknown now may become known later.
 */
export async function checkWebhookEndpoint(guard: EgressGuard, owner: EgressOwner, endpoint: string): Promise<void> {
  const url = URL.parse(endpoint);
  if (url === null || !/^https?:$/.test(url.protocol)) throw refused('must be an https URL');
  // A URL is shown to every editor, and written to logs.
  if (url.username !== '' || url.password !== '') throw refused('must have no user name and no password in it');
  const isSecure = url.protocol === 'https:';
  const to = { host: url.hostname, port: Number(url.port || (isSecure ? 443 : 80)) };
  const isException = await guard.admit(to, owner).then(
    (admitted) => admitted.isException,
    (error: unknown) => {
      if (!(error instanceof DomainError)) throw error;
      if (error.code === 'EGRESS_REFUSED') throw refused('must be one that this space may reach');
      return false;
    },
  );
  if (!isSecure && !isException) throw refused('must begin with https://');
}

function refused(detail: string): DomainError {
  return new DomainError('unprocessable', 'WEBHOOK_URL_INVALID', `The URL ${detail}.`, {
    errors: [{ pointer: '/url', detail }],
  });
}
