import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { RemoteHost } from '../../integrations/computers/client/remoteHost.ts';
import type { Host } from '../../integrations/computers/host/host.ts';
import type { HostOf } from '../../integrations/computers/liveComputers.ts';
import { findHost, hostLost, hostRemoved, isLost } from '../../models/computers/hosts.ts';
import type { Database } from '../../models/database/database.ts';
import type { HostTokens } from '../../models/identity/hostTokens.ts';

const lookMs = 250;
const readyMs = 15_000;

interface Deps {
  database: Database;
  config: Pick<Config, 'computers'>;
  tokens: Pick<HostTokens, 'sign'>;
  /** The host that this process is; undefined while it is none, or is not one yet. */
  host: () => Host | undefined;
  /** Whether it may become one. */
  mayHost: () => boolean;
}

/** The way from this process to any host: without a socket to its own, else to the address that a host announces. */
export function createHostOf(deps: Deps): HostOf {
  return async (hostId) => {
    const own = await ownOnceReady(deps);
    if (own?.hostId === hostId) return own;
    const host = await findHost(deps.database, hostId);
    if (host === undefined) throw hostRemoved();
    if (isLost(host, deps.config)) throw hostLost();
    if (host.address === null) {
      const detail = 'The host of this computer cannot be reached from here.';
      throw new DomainError('unavailable', 'HOST_LOST', detail, { retryAfterSeconds: 5 });
    }
    return new RemoteHost(host.address, deps.tokens.sign);
  };
}

/** A process that has just started takes over its computers a moment later. */
async function ownOnceReady({ host, mayHost }: Pick<Deps, 'host' | 'mayHost'>): Promise<Host | undefined> {
  const deadline = performance.now() + readyMs;
  while (mayHost() && host() === undefined && performance.now() < deadline) await delay(lookMs);
  return host();
}
