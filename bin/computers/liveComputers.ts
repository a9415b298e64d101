import { endedOperation, failureOf } from '../../api/frame/operationAnswer.ts';
import { lookUntil } from '../../base/async.ts';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { RemoteHost } from '../../integrations/computers/client/remoteHost.ts';
import type { Host } from '../../integrations/computers/host/host.ts';
import { HostError } from '../../integrations/computers/host/hostErrors.ts';
import type { HostClient } from '../../integrations/computers/hostClient.ts';
import type { ComputerRef, HostOf, LiveComputers } from '../../integrations/computers/liveComputers.ts';
import { notRunning } from '../../integrations/computers/protocol/holderHttp.ts';
import { type Computer, getComputer } from '../../models/computers/computer.ts';
import { findHost, hostLost, hostRemoved, isLost } from '../../models/computers/hosts.ts';
import { askToWake } from '../../models/computers/wishes.ts';
import type { Database } from '../../models/database/database.ts';
import type { HostTokens } from '../../models/identity/hostTokens.ts';
import type { Operation } from '../../models/operations/operation.ts';
import type { Launcher } from '../../temporal/launcher.ts';

const pauses = { firstMs: 10, mostMs: 250 };
/** Delay before telling the workflow of a start that begins in this process. */
const leadMs = 200;
/** How long a request waits for a wake to be recorded. */
const settleMs = 5_000;
/** Extra time for the steps before and after the transition itself. */
const marginMs = 10_000;

interface Deps {
  database: Database;
  config: Pick<Config, 'computers' | 'billing'>;
  launcher: Pick<Launcher, 'startOperation'>;
  hostOf: HostOf;
  /** Starts the computer in this process if it is the computer's host. Otherwise returns false. */
  startEarly?: (computer: Computer) => Promise<boolean>;
}

export function createLiveComputers(deps: Deps): LiveComputers {
  return {
    async awake(ref, by) {
      const asked = await askToWake(deps, { ...ref, actor: by });
      if (asked.operation === undefined) return clientOf(deps, asked.computer);
      if (await wake(deps, asked.computer, asked.operation)) {
        return (await deps.hostOf(asked.computer.hostId ?? '')).client(ref.computerId);
      }
      return clientOf(deps, await getComputer(deps.database, ref.spaceId, ref.computerId));
    },
    async asIs({ spaceId, computerId }) {
      return clientOf(deps, await getComputer(deps.database, spaceId, computerId));
    },
    async settled(ref) {
      await settled(deps, ref);
    },
    async unpaused(ref) {
      return clientOf(deps, await getUnpaused(deps, ref));
    },
    async work(ref) {
      return clientOf(deps, await getUnpaused(deps, ref), 'work');
    },
    async running(ref) {
      const computer = await settled(deps, ref);
      // The computer was woken, but its workflow has not recorded it yet. A repeated request finds it running.
      if (isWaking(computer)) throw wakes();
      if (computer.status !== 'running') {
        throw new DomainError('conflict', 'COMPUTER_NOT_RUNNING', 'The computer is not running.');
      }
      return clientOf(deps, computer);
    },
  };
}

/**
 * Wakes a computer and waits. However many requests ask, it wakes once, and all wait for the same operation. True if
 * this process started it, without waiting for the operation.
 */
async function wake(deps: Deps, computer: Computer, operation: Operation): Promise<boolean> {
  const early = deps.startEarly?.(computer) ?? Promise.resolve(false);
  const tell = () => void deps.launcher.startOperation(operation);
  // Telling the workflow at once would make it compete with the start.
  const telling = setTimeout(tell, leadMs);
  if (await early) return true;
  clearTimeout(telling);
  tell();
  const ended = await lookUntil(
    () => endedOperation(deps.database, operation.id),
    (seen) => seen !== undefined,
    { ...pauses, forMs: deps.config.computers.transitionMs + marginMs },
  );
  if (ended === undefined) throw wakes();
  if (ended.status !== 'succeeded') throw failureOf(ended);
  return false;
}

/** The computer after a wake in progress. An early start can be used before its row says `running`. */
function settled({ database }: Deps, { spaceId, computerId }: ComputerRef): Promise<Computer> {
  return lookUntil(
    () => getComputer(database, spaceId, computerId),
    (computer) => !isWaking(computer),
    { ...pauses, forMs: settleMs },
  );
}

function isWaking({ status, wish }: Computer): boolean {
  return status === 'starting' && wish === 'wake';
}

function wakes(): DomainError {
  const detail = 'The computer is still waking. Try again soon.';
  return new DomainError('unavailable', 'COMPUTER_WAKES', detail, { retryAfterSeconds: 5 });
}

function moves(wish: 'move' | 'restore'): DomainError {
  const work = wish === 'move' ? 'moved to another host' : 'restored from a snapshot';
  const detail = `The computer is being ${work}. Try again in a moment.`;
  return new DomainError('unavailable', 'COMPUTER_MOVES', detail, { retryAfterSeconds: 5 });
}

async function getUnpaused({ database }: Deps, { spaceId, computerId }: ComputerRef): Promise<Computer> {
  const computer = await getComputer(database, spaceId, computerId);
  if (computer.status !== 'paused') return computer;
  throw new DomainError('conflict', 'COMPUTER_PAUSED', 'The computer is paused. Wake it first.');
}

async function clientOf(
  { hostOf }: Deps,
  { id, hostId, status, wish, homeSaveId }: Computer,
  purpose: 'files' | 'work' = 'files',
): Promise<HostClient> {
  // Its home is saved for the last time here, so nothing may change there any more.
  if ((wish === 'move' || wish === 'restore') && status !== 'running') throw moves(wish);
  if (hostId === null) {
    const detail =
      homeSaveId === null
        ? 'The computer has never been used.'
        : 'The computer has left its host, and gets a home on another one when it wakes. Wake it first.';
    throw new DomainError('conflict', 'COMPUTER_NOT_RUNNING', detail);
  }
  const host = await hostOf(hostId);
  try {
    return status === 'running' ? host.client(id) : await host[purpose](id);
  } catch (error) {
    throw error instanceof HostError ? notRunning(error) : error;
  }
}

const lookMs = 250;
const readyMs = 15_000;

interface HostOfDeps {
  database: Database;
  config: Pick<Config, 'computers'>;
  tokens: Pick<HostTokens, 'sign'>;
  /** This process's host. Undefined if it is no host, or not yet. */
  host: () => Host | undefined;
  mayHost: () => boolean;
}

/** Finds hosts: this process's own directly, others by the address that they announce. */
export function createHostOf(deps: HostOfDeps): HostOf {
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

/** A process that has just started takes over its computers a moment later. Waits for that. */
function ownOnceReady({ host, mayHost }: Pick<HostOfDeps, 'host' | 'mayHost'>): Promise<Host | undefined> {
  return lookUntil(host, (own) => own !== undefined || !mayHost(), { firstMs: lookMs, forMs: readyMs });
}
