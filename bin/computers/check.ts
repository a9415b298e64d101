import { accessSync, constants } from 'node:fs';
import { counted } from '../../base/text.ts';
import type { Config } from '../../config/index.ts';
import type { LaunchConfig } from '../../config/launch.ts';
import { missingForDrives } from '../../integrations/computers/host/drives/drivePlaces.ts';
import { describeMachine } from '../../integrations/computers/host/machine/describeMachine.ts';
import { type HostUse, hostsInUse } from '../../models/computers/removedHosts.ts';
import { openDatabase } from '../../models/database/database.ts';
import { describeBrowserPrograms } from '../../stack/browsers.ts';
import { describeImagePrograms, describeSandboxPrograms } from '../../stack/computers.ts';
import { describeDesktopPrograms } from '../../stack/desktops.ts';
import { cachedGvisor } from '../../stack/gvisor.ts';
import { describeProgram } from '../../stack/programs.ts';
import { type CheckResult, off, ok, wrong } from '../support/check.ts';
import { commandLine } from '../support/commandLine.ts';

/** An upper bound. `runChecks` has a shorter limit of its own. */
const answerMs = 60_000;

/**
 * Whether computers can run on this machine, and which limits would not hold. Reports a fault only if existing homes
 * cannot be used, since nothing else needs computers.
 */
export async function checkComputers(launch: LaunchConfig): Promise<CheckResult> {
  if (!launch.computers) return off('not wanted (ATRIUM_COMPUTERS=off)');
  const agent = describeProgram('atrium-agent', launch);
  if (agent.missing) return off(`atrium-agent: ${agent.detail}`);
  const programs = describeSandboxPrograms(launch);
  const { drivers, off: missing, fault, room } = await describeMachine(launch.computersDir, options(launch));
  if (drivers.every(({ refused }) => refused !== undefined)) {
    // Other systems have only containers, whose driver is the last in the list.
    const isLinux = process.platform === 'linux';
    if (programs.missing && isLinux) return off(`sandboxes: ${programs.detail}`);
    return off(drivers.at(isLinux ? 0 : -1)?.refused ?? 'no driver is wanted');
  }
  if (fault !== undefined)
    return wrong(`none can be used: ${fault}; its host mounts them anew, or says in its log why not`);
  if (missing.length > 0) return off(`they run, but ${missing.join('; ')}`);
  const limits = 'each with a user of its own and limits of CPU, memory, tasks and disk';
  return ok(room === undefined ? limits : `${limits}; ${room}`);
}

/** Whether computers can have their space's drive as files here. */
export function checkDrive(launch: LaunchConfig): CheckResult {
  if (!launch.computers) return off('not wanted (ATRIUM_COMPUTERS=off)');
  if (!launch.computersDrive) return off('not wanted (ATRIUM_COMPUTERS_DRIVE=off)');
  const reason = missingForDrives();
  if (reason !== undefined) return off(reason);
  const { missing, detail } = describeProgram('atrium-drivefs', launch);
  return missing ? off(detail) : ok(detail);
}

/** Whether environments can begin with images of registries here. */
export function checkImages(launch: LaunchConfig): CheckResult {
  if (!launch.computers) return off('not wanted (ATRIUM_COMPUTERS=off)');
  const { registries, authFile } = launch.images;
  if (registries.length === 0) return off('not wanted (ATRIUM_IMAGE_REGISTRIES names no registry)');
  const { missing, detail } = describeImagePrograms(launch);
  if (missing) return wrong(`no images from ${registries.join(', ')}: ${detail}`);
  try {
    if (authFile !== undefined) accessSync(authFile, constants.R_OK);
  } catch {
    return wrong(`the file ${authFile} of ATRIUM_IMAGE_REGISTRY_AUTH_FILE cannot be read`);
  }
  return ok(`from ${registries.join(', ')}; ${detail}`);
}

/** The drivers that this machine has, and why each of the others is refused. */
export async function checkDrivers(launch: LaunchConfig): Promise<CheckResult> {
  if (!launch.computers) return off('not wanted (ATRIUM_COMPUTERS=off)');
  const { drivers } = await describeMachine(launch.computersDir, options(launch));
  const there = drivers.filter(({ refused }) => refused === undefined).map(({ name }) => name);
  const others = drivers.flatMap(({ name, refused }) => (refused === undefined ? [] : `no ${name}: ${refused}`));
  const detail = [there.join(', ') || 'none', ...others].join('; ');
  return there.length > 0 ? ok(detail) : off(detail);
}

/** Whether computers have an X server here. Containers bring their own. */
export function checkDesktops(launch: LaunchConfig): CheckResult {
  if (!launch.computers) return off('not wanted (ATRIUM_COMPUTERS=off)');
  const { missing, detail } = describeDesktopPrograms(launch);
  return missing ? off(detail) : ok(detail);
}

/** Whether computers have a Chromium here. Containers bring their own. */
export function checkBrowsers(launch: LaunchConfig): CheckResult {
  if (!launch.computers) return off('not wanted (ATRIUM_COMPUTERS=off)');
  const { missing, detail } = describeBrowserPrograms(launch);
  return missing ? off(detail) : ok(detail);
}

/** Finds programs that were built for this user, as a start does. */
function options(launch: LaunchConfig) {
  const { drivers, runsc = cachedGvisor(launch), docker } = launch.computerDrivers;
  const imageMiB = launch.computersImageMiB;
  return {
    ...(imageMiB !== undefined && { imageMiB }),
    ...(drivers !== undefined && { drivers }),
    ...(runsc !== undefined && { runsc }),
    docker,
  };
}

/** Whether the hosts of this installation answer this machine at the addresses that they announce. */
export async function checkHosts(config: Config): Promise<CheckResult> {
  await using database = openDatabase(config);
  const all = await hostsInUse({ database, config });
  const hosts = all.filter((host) => !host.isLost);
  const gone = all.filter((host) => host.isLost && host.computers > 0).map(describeGone);
  if (hosts.length === 0) return off(['none is there now', ...gone].join('; '));
  const looks = await Promise.all(hosts.map(lookAt));
  const faults = looks.flatMap(({ fault }) => fault ?? []);
  if (faults.length > 0) return wrong(`${[...faults, ...gone].join('; ')}: see ATRIUM_COMPUTERS_URL`);
  if (gone.length > 0)
    return wrong(`${gone.join('; ')}: start it again, or, if it never comes back, "${commandLine} host remove ID"`);
  return ok(looks.map(({ detail }) => detail).join(', '));
}

function describeGone({ id, seenAt, computers }: HostUse): string {
  return `${id} is silent since ${seenAt.toISOString()}, with the homes of ${counted(computers, 'computer')}`;
}

/** A host's address and drivers, or why other processes cannot reach it. */
async function lookAt({ id, address, drivers }: HostUse): Promise<{ detail: string; fault?: string }> {
  const has = drivers === '' ? 'with no driver now' : `with ${drivers.replaceAll(',', ', ')}`;
  if (address === null) return { detail: `${id} in its own process ${has}` };
  const detail = `${id} ${address} ${has}`;
  try {
    const response = await fetch(`${address}/`, { signal: AbortSignal.timeout(answerMs), redirect: 'error' });
    const { hostId, missingDrivers = [] } = (await response.json()) as { hostId?: unknown; missingDrivers?: string[] };
    if (hostId !== id) return { detail, fault: `at ${address} answers something else than ${id}` };
    return {
      detail:
        missingDrivers.length === 0 ? detail : `${detail}, without ${missingDrivers.join(' and ')} (its log says why)`,
    };
  } catch {
    return { detail, fault: `${id} does not answer at ${address}` };
  }
}
