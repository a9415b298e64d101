import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Area } from './area.ts';
import type { ApiDeps } from './deps.ts';

/**
 * Host names that an area serves by itself, beside the API: nothing of the API’s app, its CORS or its cookies is there.
 */
export interface OwnHosts {
  /** Whether it serves this name; without the port, in lower case. */
  takes(hostName: string): boolean;
  /** An upgrade comes with its `handshake`, and a response that must be detached from the socket before it is taken. */
  handle(req: IncomingMessage, res: ServerResponse): void;
}

/** Finds what serves a request’s host name, where that is not the API. */
export function ownHosts(areas: readonly Area[], deps: ApiDeps): (req: IncomingMessage) => OwnHosts | undefined {
  const all = areas.flatMap(({ hosts = [] }) => hosts.map((create) => create(deps)));
  return ({ headers }) => {
    const name = hostNameOf(headers.host);
    return all.find((one) => one.takes(name));
  };
}

/** `A.Example.com.:8080` is `a.example.com`. */
export function hostNameOf(host = ''): string {
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
}
