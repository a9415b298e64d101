import { setTimeout as delay } from 'node:timers/promises';
import { endedOperation, failureOf } from '../../api/frame/operationAnswer.ts';
import type { Config } from '../../config/index.ts';
import type { Host } from '../../integrations/computers/host/host.ts';
import { HostError } from '../../integrations/computers/host/hostErrors.ts';
import type { HostClient } from '../../integrations/computers/hostClient.ts';
import type { ComputerRef, LiveComputers, WokenBy } from '../../integrations/computers/liveComputers.ts';
import { type Computer, getComputer } from '../../models/computers/computer.ts';
import { askToWake } from '../../models/computers/wishes.ts';
import type { Database } from '../../models/database.ts';
import { DomainError } from '../../models/errors.ts';
import type { Operation } from '../../models/operation.ts';
import type { Launcher } from '../../temporal/launcher.ts';

const firstLookMs = 10;
const longestLookMs = 250;
/** What may come before and after the transition itself. */
const marginMs = 10_000;
const readyMs = 15_000;

interface Deps {
  database: Database;
  config: Pick<Config, 'computers' | 'billing'>;
  launcher: Pick<Launcher, 'startOperation'>;
  /** The host that this process is; undefined while it is none, or is not one yet. */
  host: () => Host | undefined;
  /** Whether it may become one. */
  mayHost: () => boolean;
}

/** The way to computers from this process. */
export function createLiveComputers(deps: Deps): LiveComputers {
  return {
    async awake(ref, by) {
      await wake(deps, ref, by);
      return clientOf(deps, await getComputer(deps.database, ref.spaceId, ref.computerId));
    },
    async asIs({ spaceId, computerId }) {
      return clientOf(deps, await getComputer(deps.database, spaceId, computerId));
    },
  };
}

/** However many ask at once, it is woken once; whoever asks waits for the same operation. */
async function wake(deps: Deps, ref: ComputerRef, by: WokenBy): Promise<void> {
  const { operation } = await askToWake(deps, { ...ref, actor: by });
  if (operation === undefined) return;
  void deps.launcher.startOperation(operation);
  const ended = await untilEnded(deps, operation);
  if (ended === undefined) {
    const detail = 'The computer takes long to wake. Try again soon.';
    throw new DomainError('unavailable', 'COMPUTER_WAKES', detail, { retryAfterSeconds: 5 });
  }
  if (ended.status !== 'succeeded') throw failureOf(ended);
}

async function untilEnded({ database, config }: Deps, { id }: Operation): Promise<Operation | undefined> {
  const deadline = performance.now() + config.computers.transitionMs + marginMs;
  for (let waitMs = firstLookMs; performance.now() < deadline; waitMs = Math.min(waitMs * 1.4, longestLookMs)) {
    const ended = await endedOperation(database, id);
    if (ended !== undefined) return ended;
    await delay(waitMs);
  }
  return undefined;
}

async function clientOf(deps: Deps, { id, hostId, status }: Computer): Promise<HostClient> {
  if (hostId === null) {
    throw new DomainError('conflict', 'COMPUTER_NOT_RUNNING', 'The computer has never been used.');
  }
  const host = await hostOnceReady(deps);
  if (host === undefined || host.hostId !== hostId) {
    const detail = 'The host of this computer cannot be reached from here.';
    throw new DomainError('unavailable', 'HOST_LOST', detail, { retryAfterSeconds: 5 });
  }
  try {
    return status === 'running' ? host.client(id) : await host.files(id);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    throw new DomainError('conflict', 'COMPUTER_NOT_RUNNING', 'The computer is not running.', { cause: error });
  }
}

/** A process that has just started takes over its computers a moment later. */
async function hostOnceReady({ host, mayHost }: Pick<Deps, 'host' | 'mayHost'>): Promise<Host | undefined> {
  const deadline = performance.now() + readyMs;
  while (mayHost() && host() === undefined && performance.now() < deadline) await delay(longestLookMs);
  return host();
}
