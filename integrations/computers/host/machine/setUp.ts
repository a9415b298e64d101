import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolderDurablySync, writeDurablySync } from '../../../../disk/durable.ts';
import { writeEtc } from '../../drivers/bubblewrap/view.ts';
import type { Driver, RefusedDriver } from '../../drivers/driver.ts';
import { openDrivers } from '../../drivers/drivers.ts';
import { prepareAgent, prepareHolder } from '../../programs/prepare.ts';
import { ifThere } from '../../system/ifThere.ts';
import { findSystemProgram } from '../../system/programs.ts';
import type { DriverName } from '../../types.ts';
import { cgroupConfinement } from '../confinement/cgroupConfinement.ts';
import { type CgroupRoots, findCgroups, makeRoots } from '../confinement/cgroupRoots.ts';
import { limitRoots } from '../confinement/computerCgroup.ts';
import type { Confinement } from '../confinement/confinement.ts';
import { treeConfinement } from '../confinement/treeConfinement.ts';
import { btrfsDisks } from '../disks/btrfs.ts';
import type { Disks } from '../disks/disks.ts';
import { watchedDisks } from '../disks/watched.ts';
import type { HostOptions, HostRights } from '../host.ts';
import { HostError } from '../hostErrors.ts';
import { type HostLayout, hostLayout } from '../layout.ts';
import { socketAdvice } from './describeMachine.ts';
import {
  closedFolderAdvice,
  findOwnView,
  type HostLimits,
  hostLimits,
  type OwnView,
  raiseMachineSettings,
  terminalAdvice,
} from './machine.ts';
import { findSystems, type Systems } from './systems.ts';
import { openUids, type Uids } from './uids.ts';

/** What a host has found on its machine and prepared. */
export interface Machinery {
  hostId: string;
  limits: HostLimits;
  rights: HostRights;
  uids: Uids | undefined;
  ownView: OwnView | undefined;
  systems: Systems | { missing: string };
  /** Available drivers. Empty only while an engine is away. Drivers that appear later are added. */
  drivers: Map<DriverName, Driver>;
  /** Wanted drivers that are missing. */
  refused: Map<DriverName, RefusedDriver>;
  /** Tries to open these drivers again. */
  openAgain: (names: readonly DriverName[]) => ReturnType<typeof openDrivers>;
  /** The machine's own confinement. It confines all holders, even if a driver has another one for its sandboxes. */
  confinement: Confinement;
  disks: Disks;
  /** The command of a holder, without the prefix `ownView`. */
  holderCommand: string[];
}

/** Prepares the machine. Throws `COMPUTERS_OFF` with advice if it cannot run computers. */
export async function setUpMachine(layout: HostLayout, options: HostOptions): Promise<Machinery> {
  makeFolders(layout);
  const hostId = identify(layout);
  const without = new Set(options.without);
  const uids = isRoot() && !without.has('users') ? openUids() : undefined;
  if (isRoot() && uids === undefined) {
    throw off('Atrium is root, and cannot run anything as another user here; start it as a user who is not root');
  }
  const missing: string[] = uids === undefined ? ['not root: all computers share one user'] : [];
  const ownView = uids === undefined ? undefined : await findOwnView(layout.homes);
  if (uids !== undefined && ownView === undefined) missing.push(terminalAdvice);
  const limits = hostLimits(options.memoryMiB);
  const roots = cgroupRoots(hostId, without.has('cgroups'), limits, missing);
  const confinement = roots === undefined ? treeConfinement() : cgroupConfinement(roots);
  if (uids !== undefined) missing.push(...raiseMachineSettings());
  const agentDir = join(layout.runtime, 'agent');
  const etcDir = join(layout.runtime, 'etc');
  await writeEtc(etcDir);
  const [agent, holderCommand] = await Promise.all([
    prepareAgent(agentDir, options.agent),
    prepareHolder(join(layout.runtime, 'holder')),
  ]);
  const setting = {
    hostId,
    runtimeDir: layout.runtime,
    agentDir,
    etcDir,
    agent,
    firstUid: uids?.first,
    confinement,
    ownView,
    roots,
  };
  const { drivers, refused } = await openDrivers(setting, options);
  if (drivers.size === 0 && !refused.some(({ isAway }) => isAway))
    throw off(refused.map(({ name, refused: reason }) => `${name}: ${reason}`).join('; ') || 'no driver is wanted');
  for (const { name, refused: reason } of refused) options.log?.('info', { driver: name, reason }, 'A driver is off');
  const disks = await openDisks(layout, options, without.has('image'), missing);
  const systems = await findSystems({
    layout,
    disks,
    uids,
    ownView,
    hasCgroups: roots !== undefined,
    hasBubblewrap: drivers.has('bubblewrap'),
    agent: join(agentDir, 'agent'),
  });
  return {
    hostId,
    limits,
    rights: {
      users: uids !== undefined,
      cgroups: confinement.kind === 'cgroups',
      diskLimits: disks.kind === 'limited',
      off: missing,
      noBases: 'missing' in systems ? systems.missing : undefined,
    },
    uids,
    ownView,
    systems,
    drivers,
    refused: new Map(refused.map((one) => [one.name, one])),
    openAgain: (names) => openDrivers(setting, { ...options, drivers: names }),
    confinement,
    disks,
    holderCommand,
  };
}

export const isRoot = () => process.getuid?.() === 0;

const off = (reason: string) => new HostError('COMPUTERS_OFF', reason);

function makeFolders({ dir, runtime, logs, runs }: HostLayout): void {
  makeFolderDurablySync(dir);
  // Each computer's user may enter it, none may list it.
  chmodSync(dir, 0o711);
  mkdirSync(runs, { recursive: true, mode: 0o711 });
  if (statSync(runs).uid !== process.getuid?.()) throw off(`${runs} belongs to somebody else`);
  chmodSync(runs, 0o711);
  mkdirSync(runtime, { recursive: true });
  chmodSync(runtime, 0o755);
  mkdirSync(logs, { recursive: true, mode: 0o700 });
  if (!isRoot()) return;
  const advice = closedFolderAdvice(dir);
  if (advice !== undefined) throw off(advice);
}

interface Identity {
  hostId: string;
  /** The folder for which the identity was made. */
  dir?: string;
}

/**
 * The id of this host, made if there is none. The host's cgroups and containers are named after it, so two hosts with
 * one id on a machine would end each other's computers: a copied folder is refused.
 */
export function identify(layout: HostLayout): string {
  const found = readIdentity(layout.identity);
  const hostId = found?.hostId ?? `hst_${randomBytes(10).toString('hex')}`;
  if (found?.dir === layout.dir) return hostId;
  const other = found?.dir === undefined ? undefined : hostLayout(found.dir);
  if (
    other !== undefined &&
    readIdentity(other.identity)?.hostId === hostId &&
    !isSameFile(other.identity, layout.identity)
  ) {
    throw off(
      `${layout.dir} is a copy of ${other.dir}, and both would be the host ${hostId}; remove one of them, or make a copy by a backup and a restore`,
    );
  }
  writeDurablySync(layout.identity, JSON.stringify({ hostId, dir: layout.dir } satisfies Identity));
  return hostId;
}

function readIdentity(file: string): Identity | undefined {
  const text = ifThere(() => readFileSync(file, 'utf8'));
  return text === undefined ? undefined : (JSON.parse(text) as Identity);
}

/** Whether two paths lead to the same file. */
function isSameFile(one: string, other: string): boolean {
  const [first, second] = [statSync(one), statSync(other)];
  return first.dev === second.dev && first.ino === second.ino;
}

function cgroupRoots(hostId: string, refused: boolean, limits: HostLimits, missing: string[]): CgroupRoots | undefined {
  const found = refused
    ? { missing: 'cgroups are not used' }
    : isRoot()
      ? findCgroups(readFileSync('/proc/self/mountinfo', 'utf8'), `atrium-${hostId}`)
      : { missing: 'not root: CPU, memory and tasks are not limited' };
  const failure = 'roots' in found ? makeRoots(found.roots) : found;
  if ('roots' in found && failure === undefined) {
    const advice = socketAdvice(found.roots);
    if (advice !== undefined) missing.push(advice);
    const exceeded = limitRoots(found.roots, limits);
    if (exceeded !== undefined) missing.push(exceeded.missing);
    return found.roots;
  }
  missing.push(failure?.missing ?? '');
  return undefined;
}

async function openDisks(
  layout: HostLayout,
  options: HostOptions,
  refused: boolean,
  missing: string[],
): Promise<Disks> {
  const found = await limitedDisks(layout, options, refused);
  if ('kind' in found) return found;
  missing.push(`homes are only looked at for their size: ${found.missing}`);
  mkdirSync(layout.homes, { recursive: true });
  chmodSync(layout.homes, 0o711);
  return watchedDisks(layout.homes);
}

async function limitedDisks({ image, homes }: HostLayout, { imageMiB }: HostOptions, refused: boolean) {
  if (refused) return { missing: 'no image is used' };
  if (!isRoot()) return { missing: 'not root' };
  if (findSystemProgram('mkfs.btrfs') === undefined) {
    return { missing: 'btrfs-progs is missing; install it (Debian and Ubuntu: apt-get install btrfs-progs)' };
  }
  return btrfsDisks({ image, homes, sizeMiB: imageMiB });
}

/** Makes the folder of a computer. Its user may pass through it, but change nothing. */
export function makeComputerDir(path: string): void {
  mkdirSync(path, { recursive: true });
  chmodSync(path, 0o711);
}

/** Makes a folder that belongs to the computer's user. */
export function giveFolder(path: string, uid: number | null): void {
  if (!existsSync(path)) mkdirSync(path, { mode: 0o700 });
  if (uid !== null) chownSync(path, uid, uid);
}
