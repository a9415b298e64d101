import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Area } from './area.ts';
import type { ApiDeps } from './deps.ts';

/** Host names that an area serves by itself. The API's app, CORS and cookies do not apply to them. */
export interface OwnHosts {
  /** Whether the area serves this name. The name is in lower case and has no port. */
  takes(hostName: string): boolean;
  /** An upgrade comes with a `handshake`. Detach its response from the socket before taking the socket. */
  handle(req: IncomingMessage, res: ServerResponse): void;
}

/** Finds the handler of a request’s host name. Undefined when the API answers for it. */
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
