import { DomainError } from '../../models/errors.ts';
import { guardedFetch } from '../egress/fetch.ts';
import type { EgressGuard, EgressOwner } from '../egress/guard.ts';
import type { PushFetch } from './pushSender.ts';

/** A device is a user's and of no space, so no space's list says where its pushes may go: everywhere but inside. */
const owner: EgressOwner = {
  purpose: 'push',
  policy: { allow: [], deny: [] },
  record: async () => undefined,
};

/** The way of a push through the egress guard: its address comes from a user, and may be one that only we can reach. */
export function createPushFetch(guard: EgressGuard): PushFetch {
  return async (url, init) => {
    await checkPushEndpoint(guard, url);
    await using guarded = guardedFetch(guard, owner);
    const response = await guarded.fetch(url, { ...init, body: new Uint8Array(init.body) });
    // What a push service says beside its status is of no interest.
    await response.body?.cancel();
    return response;
  };
}

/**
 * Throws 422 `PUSH_ENDPOINT_REFUSED` for what no push goes to: an internal address, and one without TLS, unless the
 * operator has made an exception of it. A name that is not known now may be known later.
 */
export async function checkPushEndpoint(guard: EgressGuard, endpoint: string): Promise<void> {
  const url = URL.parse(endpoint);
  if (url === null || !/^https?:$/.test(url.protocol)) throw refused('must be an https URL');
  const isSecure = url.protocol === 'https:';
  const to = { host: url.hostname, port: Number(url.port || (isSecure ? 443 : 80)) };
  const isException = await guard.admit(to, owner).then(
    (admitted) => admitted.isException,
    (error: unknown) => {
      if (!(error instanceof DomainError)) throw error;
      if (error.code === 'EGRESS_REFUSED') throw refused('must not be internal');
      return false;
    },
  );
  if (!isSecure && !isException) throw refused('must begin with https://');
}

function refused(detail: string): DomainError {
  return new DomainError('unprocessable', 'PUSH_ENDPOINT_REFUSED', `The endpoint ${detail}.`, {
    errors: [{ pointer: '/endpoint', detail }],
  });
}
