import { setTimeout as delay } from 'node:timers/promises';
import { endedOperation, failureOf } from '../../api/frame/operationAnswer.ts';
import type { Config } from '../../config/index.ts';
import { HostError, notRunning } from '../../integrations/computers/host/hostErrors.ts';
import type { HostClient } from '../../integrations/computers/hostClient.ts';
import type { ComputerRef, HostOf, LiveComputers, WokenBy } from '../../integrations/computers/liveComputers.ts';
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

interface Deps {
  database: Database;
  config: Pick<Config, 'computers' | 'billing'>;
  launcher: Pick<Launcher, 'startOperation'>;
  hostOf: HostOf;
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
    async work({ spaceId, computerId }) {
      const computer = await getComputer(deps.database, spaceId, computerId);
      if (computer.status === 'paused') {
        throw new DomainError('conflict', 'COMPUTER_PAUSED', 'The computer is paused. Wake it first.');
      }
      return clientOf(deps, computer, 'work');
    },
    async running({ spaceId, computerId }) {
      const computer = await getComputer(deps.database, spaceId, computerId);
      if (computer.status !== 'running') {
        throw new DomainError('conflict', 'COMPUTER_NOT_RUNNING', 'The computer is not running.');
      }
      return clientOf(deps, computer);
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

async function clientOf(
  { hostOf }: Deps,
  { id, hostId, status }: Computer,
  purpose: 'files' | 'work' = 'files',
): Promise<HostClient> {
  if (hostId === null) {
    throw new DomainError('conflict', 'COMPUTER_NOT_RUNNING', 'The computer has never been used.');
  }
  const host = await hostOf(hostId);
  try {
    return status === 'running' ? host.client(id) : await host[purpose](id);
  } catch (error) {
    throw error instanceof HostError ? notRunning(error) : error;
  }
}
