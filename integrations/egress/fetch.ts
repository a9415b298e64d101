import type { Agent, Dispatcher } from 'undici';
import { onFirstUse } from '../onFirstUse.ts';
import type { EgressGuard, EgressOwner } from './guard.ts';
import { authorityOf, defaultPort, normaliseHost } from './hostName.ts';

const loadLibrary = onFirstUse(() => import('undici'));
type Library = Awaited<ReturnType<typeof loadLibrary>>;

/** A fetch that asks the guard about every connection, also for redirects. Dispose of it when the work is done. */
export interface GuardedFetch extends AsyncDisposable {
  fetch: typeof globalThis.fetch;
}

export interface GuardedFetchOptions {
  connectTimeoutMs?: number;
  /** How long the server may be silent before its headers, and within its body. */
  idleTimeoutMs?: number;
}

/**
 * Makes a fetch for one piece of work of one owner. Its connections are not shared and end with it: one space's allowed
 * connection must not serve another.
 */
export function guardedFetch(guard: EgressGuard, owner: EgressOwner, options: GuardedFetchOptions = {}): GuardedFetch {
  const { connectTimeoutMs = 10_000, idleTimeoutMs = 60_000 } = options;
  let agent: Agent | undefined;
  let isOver = false;
  const makeAgent = ({ Agent, buildConnector }: Library) => {
    const connect = buildConnector({ timeout: connectTimeoutMs });
    return new Agent({
      headersTimeout: idleTimeoutMs,
      bodyTimeout: idleTimeoutMs,
      connect(to, callback) {
        guard.admit({ host: to.hostname, port: Number(to.port || defaultPort(to.protocol)) }, owner).then(
          // TLS still uses the name, and checks the certificate against it; an address has none.
          ({ host, address }) => connect({ ...to, hostname: address, servername: to.servername ?? host }, callback),
          (error: Error) => callback(error, null),
        );
      },
    });
  };
  const fetch = async (input: unknown, init: unknown) => {
    const library = await loadLibrary();
    if (isOver) throw new Error('The work that this fetch was made for is over.');
    agent ??= makeAgent(library);
    const { fetch: undiciFetch } = library;
    const dispatcher = agent.compose(asChecked);
    try {
      return await undiciFetch(input as never, { ...(init as object), dispatcher });
    } catch (error) {
      // Throw the refusal itself instead of "fetch failed".
      throw error instanceof TypeError && error.cause instanceof Error ? error.cause : error;
    }
  };
  return {
    fetch: fetch as unknown as typeof globalThis.fetch,
    async [Symbol.asyncDispose]() {
      isOver = true;
      await agent?.destroy();
    },
  };
}

/**
 * Makes each request, redirects included, name exactly the host that the guard is asked about: in TLS, and in the Host
 * header, which callers cannot set. A host that cannot be normalised stays, for the guard to refuse.
 */
const asChecked: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) => {
  const url = new URL(String(options.origin));
  const host = normaliseHost(url.hostname);
  const port = defaultPort(url.protocol);
  const origin =
    host === undefined ? url.origin : `${url.protocol}//${authorityOf(host, Number(url.port || port), port)}`;
  const given = (options.headers ?? {}) as Record<string, string>;
  const headers = Object.fromEntries(Object.entries(given).filter(([name]) => name.toLowerCase() !== 'host'));
  return dispatch({ ...options, origin, headers }, handler);
};
