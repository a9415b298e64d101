import { Agent, buildConnector, fetch as undiciFetch } from 'undici';
import type { EgressGuard, EgressOwner } from './guard.ts';
import { bareHost } from './hostPattern.ts';

/** A fetch whose every connection, of each redirect too, goes through the guard. Dispose of it when the work is done. */
export interface GuardedFetch extends AsyncDisposable {
  fetch: typeof globalThis.fetch;
}

export interface GuardedFetchOptions {
  connectTimeoutMs?: number;
  /** How long the server may say nothing before its headers, and within its body. */
  idleTimeoutMs?: number;
}

/**
 * Makes a fetch for one piece of work of one owner. Connections are its own and end with it: what one space's list has admitted is no
 * way for another.
 */
export function guardedFetch(guard: EgressGuard, owner: EgressOwner, options: GuardedFetchOptions = {}): GuardedFetch {
  const { connectTimeoutMs = 10_000, idleTimeoutMs = 60_000 } = options;
  const connect = buildConnector({ timeout: connectTimeoutMs });
  const agent = new Agent({
    headersTimeout: idleTimeoutMs,
    bodyTimeout: idleTimeoutMs,
    connect(to, callback) {
      const host = bareHost(to.hostname);
      const port = Number(to.port) || (to.protocol === 'https:' ? 443 : 80);
      guard.admit({ host, port }, owner).then(
        // TLS still speaks to the name, and checks the certificate against it; an address has none.
        (address) => connect({ ...to, hostname: address, servername: to.servername ?? host }, callback),
        (error: Error) => callback(error, null),
      );
    },
  });
  const fetch = async (input: unknown, init: unknown) => {
    try {
      return await undiciFetch(input as never, { ...(init as object), dispatcher: agent });
    } catch (error) {
      // The refusal itself, and not "fetch failed".
      throw error instanceof TypeError && error.cause instanceof Error ? error.cause : error;
    }
  };
  return {
    fetch: fetch as unknown as typeof globalThis.fetch,
    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}
