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
    await using guarded = guardedFetch(guard, owner);
    const response = await guarded.fetch(url, { ...init, body: new Uint8Array(init.body) });
    // What a push service says beside its status is of no interest.
    await response.body?.cancel();
    return response;
  };
}
