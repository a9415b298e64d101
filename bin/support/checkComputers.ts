import type { Config } from '../../config/index.ts';
import type { LaunchConfig } from '../../config/launch.ts';
import { describeMachine } from '../../integrations/computers/host/describeMachine.ts';
import type { ComputerHostRow } from '../../models/computers/hosts.ts';
import { type HostUse, hostsInUse } from '../../models/computers/removedHosts.ts';
import { openDatabase } from '../../models/database.ts';
import { describeSandboxPrograms } from '../../stack/computers.ts';
import { type CheckResult, off, ok, wrong } from './check.ts';

const answerMs = 3_000;

/**
 * Whether computers can run on this machine, and which limits would not hold. Nothing else needs them, so nothing here
 * is a fault.
 */
export async function checkComputers(launch: LaunchConfig): Promise<CheckResult> {
  if (!launch.computers) return off('not wanted (ATRIUM_COMPUTERS=off)');
  const programs = describeSandboxPrograms(launch);
  const { refused, off: missing, room } = await describeMachine(launch.computersDir);
  if (refused !== undefined) return off(programs.missing ? `sandboxes: ${programs.detail}` : refused);
  if (missing.length > 0) return off(`they run, but ${missing.join('; ')}`);
  const limits = 'each with a user of its own and limits of CPU, memory, tasks and disk';
  return ok(room === undefined ? limits : `${limits}; ${room}`);
}

/** Whether the hosts of this installation answer, from here, at the addresses that they announce. */
export async function checkHosts(config: Config): Promise<CheckResult> {
  const database = openDatabase(config);
  try {
    const all = await hostsInUse({ database, config });
    const hosts = all.filter((host) => !host.isLost);
    const gone = all.filter((host) => host.isLost && host.computers > 0).map(describeGone);
    if (hosts.length === 0) return off(['none is there now', ...gone].join('; '));
    const faults = (await Promise.all(hosts.map(faultOf))).filter((fault) => fault !== undefined);
    if (faults.length > 0) return wrong(`${[...faults, ...gone].join('; ')}: see ATRIUM_COMPUTERS_URL`);
    if (gone.length > 0)
      return wrong(`${gone.join('; ')}: start it again, or, if it never comes back, "atrium host remove ID"`);
    return ok(hosts.map(({ id, address }) => `${id} ${address === null ? 'in its own process' : address}`).join(', '));
  } finally {
    await database.close();
  }
}

function describeGone({ id, seenAt, computers }: HostUse): string {
  return `${id} is silent since ${seenAt.toISOString()}, with the homes of ${computers} computers`;
}

/** What keeps other processes from a host. */
async function faultOf({ id, address }: ComputerHostRow): Promise<string | undefined> {
  if (address === null) return undefined;
  try {
    const response = await fetch(`${address}/`, { signal: AbortSignal.timeout(answerMs), redirect: 'error' });
    const { hostId } = (await response.json()) as { hostId?: unknown };
    return hostId === id ? undefined : `at ${address} answers something else than ${id}`;
  } catch {
    return `${id} does not answer at ${address}`;
  }
}
