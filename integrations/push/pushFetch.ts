import { DomainError } from '../../base/errors.ts';
import { endpointFault, readEndpoint } from '../egress/endpoint.ts';
import { guardedFetch } from '../egress/fetch.ts';
import type { EgressGuard, EgressOwner } from '../egress/guard.ts';
import type { PushFetch } from './pushSender.ts';

/**
 * A device belongs to a user and not to a space, so no space's list applies. Pushes may go anywhere except to internal
 * addresses.
 */
const owner: EgressOwner = {
  purpose: 'push',
  policy: { allow: [], deny: [] },
  record: async () => undefined,
};

/** Sends pushes through the egress guard. The address comes from a user, and might be one that only we can reach. */
export function createPushFetch(guard: EgressGuard): PushFetch {
  return async (url, init) => {
    await checkPushEndpoint(guard, url);
    await using guarded = guardedFetch(guard, owner);
    const response = await guarded.fetch(url, { ...init, body: new Uint8Array(init.body) });
    // Only the status of the answer matters.
    await response.body?.cancel();
    return response;
  };
}

/**
 * Throws 422 `PUSH_ENDPOINT_REFUSED` for an internal address or one without TLS, unless the operator allows it. An
 * unknown name is accepted, since it may be known later.
 */
export async function checkPushEndpoint(guard: EgressGuard, endpoint: string): Promise<void> {
  const url = readEndpoint(endpoint);
  if (url === undefined) throw refused('must be an https URL');
  const fault = await endpointFault(guard, owner, url);
  if (fault === 'refused') throw refused('must not be internal');
  if (fault === 'insecure') throw refused('must begin with https://');
}

function refused(detail: string): DomainError {
  return new DomainError('unprocessable', 'PUSH_ENDPOINT_REFUSED', `The endpoint ${detail}.`, {
    errors: [{ pointer: '/endpoint', detail }],
  });
}
