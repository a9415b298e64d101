import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { listen } from '../../api/frame/server.ts';
import type { Host } from '../../integrations/computers/host/host.ts';
import { createHostServer } from '../../integrations/computers/host/server.ts';
import type { Services } from '../support/services.ts';

export interface ServedHost {
  /** What it announces to the other processes. */
  address: string;
  close(): void;
}

/** Serves the computers of this process to the others. Throws a ConfigError where it cannot listen. */
export async function serveHost({ config, identity, logger }: Services, host: Host): Promise<ServedHost> {
  const { host: bound, port, url } = config.computers.server;
  const { server, close } = createHostServer({
    host,
    verify: identity.hostTokens.verify,
    log: (facts, message) => logger.error(facts, message),
  });
  await listen(server, { host: bound, port }, { host: 'ATRIUM_COMPUTERS_HOST', port: 'ATRIUM_COMPUTERS_PORT' });
  return { address: url ?? `http://${nameOf(bound)}:${(server.address() as AddressInfo).port}`, close };
}

/** Where it listens on every address, it is known by the machine’s name. */
function nameOf(bound: string): string {
  if (bound === '0.0.0.0' || bound === '::') return hostname();
  return bound.includes(':') ? `[${bound}]` : bound;
}
