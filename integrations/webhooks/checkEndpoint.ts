import { DomainError } from '../../base/errors.ts';
import { endpointFault, readEndpoint } from '../egress/endpoint.ts';
import type { EgressGuard, EgressOwner } from '../egress/guard.ts';

/**
 * Throws 422 `WEBHOOK_URL_INVALID` for an address that the space may not reach, and for one without TLS, unless the
 * operator has made an exception. A name that is unknown now may become known later.
 */
export async function checkWebhookEndpoint(guard: EgressGuard, owner: EgressOwner, endpoint: string): Promise<void> {
  const url = readEndpoint(endpoint);
  if (url === undefined) throw refused('must be an https URL');
  // Parsing drops some of them, and whoever shows the URL would obey them: one turns the direction of text.
  if (/[\s\p{Cc}\p{Cf}]/u.test(endpoint)) throw refused('must have no spaces and no control characters in it');
  // A URL is shown to every editor, and written to logs.
  if (url.username !== '' || url.password !== '') throw refused('must have no user name and no password in it');
  const fault = await endpointFault(guard, owner, url);
  if (fault === 'refused')
    throw refused(
      'must be one that this space may reach: an operator allows an internal one by ATRIUM_EGRESS_ALLOW_INTERNAL',
    );
  if (fault === 'insecure') throw refused('must begin with https://');
}

function refused(detail: string): DomainError {
  return new DomainError('unprocessable', 'WEBHOOK_URL_INVALID', `The URL ${detail}.`, {
    errors: [{ pointer: '/url', detail }],
  });
}
