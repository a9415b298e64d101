import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findBubblewrap } from '../../drivers/bubblewrap/driver.ts';
import { findDocker } from '../../drivers/docker/driver.ts';
import { driverNames } from '../../drivers/drivers.ts';
import { findRunsc } from '../../drivers/gvisor/driver.ts';
import { findSystemProgram } from '../../system/programs.ts';
import type { DriverName } from '../../types.ts';
import { type CgroupRoots, findCgroups } from '../confinement/cgroupRoots.ts';
import { socketLimit } from '../confinement/computerCgroup.ts';
import { isMounted } from '../disks/btrfs.ts';
import { type DiskRoom, describeRoom, isScarce, roomIn } from '../disks/disks.ts';
import { faultOfHost, roomInImage } from '../disks/image.ts';
import { areCountsWrong } from '../disks/quotas.ts';
import type { HostOptions } from '../host.ts';
import { hostLayout } from '../layout.ts';
import { closedFolderAdvice, findOwnView, terminalAdvice } from './machine.ts';
import { usualFirstUid } from './uids.ts';

/** For `atrium doctor`: whether this machine can run computers, and which limits would not hold. */
export interface MachineDescription {
  /** For each driver, why this machine does not have it, and what to do. */
  drivers: { name: DriverName; refused: string | undefined }[];
  off: string[];
  /** Why no home can be used now. */
  fault?: string;
  /** The room for homes, in words. Undefined if there is no folder for homes yet. */
  room?: string;
}

/** Describes the machine without changing anything. */
export async function describeMachine(
  dir: string,
  {
    drivers: wanted = driverNames,
    runsc,
    docker = {},
    imageMiB,
  }: Pick<HostOptions, 'drivers' | 'runsc' | 'docker' | 'imageMiB'> = {},
): Promise<MachineDescription> {
  const asRoot = process.getuid?.() === 0;
  const bubblewrap = refusalOf(await findBubblewrap(asRoot ? usualFirstUid : undefined));
  const refusals: Record<DriverName, () => Promise<string | undefined>> = {
    bubblewrap: async () => bubblewrap,
    gvisor: async () => refusalOf(findRunsc(runsc)) ?? bubblewrap,
    docker: async () => refusalOf(await findDocker(docker)),
  };
  const drivers = await Promise.all(
    driverNames
      .filter((name) => wanted.includes(name))
      .map(async (name) => ({ name, refused: await refusals[name]() })),
  );
  if (process.platform !== 'linux' || drivers.every(({ refused }) => refused !== undefined)) {
    return { drivers, off: [] };
  }
  if (!asRoot) {
    return {
      drivers,
      off: [
        'not root: computers share one user, and CPU, memory, tasks and disks have no limit of the kernel’s',
        ...cellAdvice(drivers),
      ],
    };
  }
  const closed = closedFolderAdvice(dir);
  if (closed !== undefined) return { drivers: drivers.map(({ name }) => ({ name, refused: closed })), off: [] };
  const cgroups = findCgroups(readFileSync('/proc/self/mountinfo', 'utf8'), 'atrium-doctor');
  const lines = [
    'missing' in cgroups ? cgroups.missing : socketAdvice(cgroups.roots),
    (await findOwnView()) === undefined ? terminalAdvice : undefined,
    await diskAdvice(dir),
    ...cellAdvice(drivers),
  ];
  const room = roomFor(dir, imageMiB);
  if (room !== undefined && isScarce(room)) lines.push(`their disk is nearly full: ${describeRoom(room)}`);
  const off = lines.filter((line) => line !== undefined);
  const fault = faultOfHost(hostLayout(dir));
  return {
    drivers,
    off,
    ...(fault !== undefined && { fault }),
    ...(room !== undefined && { room: describeRoom(room) }),
  };
}

const refusalOf = (found: { refused: string } | object) => ('refused' in found ? (found.refused as string) : undefined);

/** Warns of drivers that do not keep secrets of runs from the computer's other processes. */
function cellAdvice(drivers: MachineDescription['drivers']): string[] {
  const isThere = findSystemProgram('nsenter') !== undefined;
  return drivers
    .filter(({ name, refused }) => refused === undefined && !(name === 'bubblewrap' && isThere))
    .map(({ name }) => {
      const what = `with ${name}, other processes of a computer see the secrets that runs of apps are given`;
      return name === 'bubblewrap' ? `${what}: install util-linux, for nsenter` : what;
    });
}

/** Warns if the cgroups do not limit the memory of sockets. */
export function socketAdvice({ version, memory }: CgroupRoots): string | undefined {
  if (version === 2 || existsSync(join(memory, '..', socketLimit))) return undefined;
  return 'this kernel’s cgroups v1 do not limit the memory of sockets: boot with cgroups v2 (systemd.unified_cgroup_hierarchy=1)';
}

function roomFor(dir: string, sizeMiB: number | undefined): DiskRoom | undefined {
  const { homes, image } = hostLayout(dir);
  if (isMounted(homes)) return roomInImage({ homes, image, sizeMiB });
  return existsSync(homes) && !existsSync(image) ? roomIn(homes) : undefined;
}

async function diskAdvice(dir: string): Promise<string | undefined> {
  const { homes, image } = hostLayout(dir);
  if (isMounted(homes)) {
    return (await areCountsWrong(homes)) ? 'limits of disks do not hold until btrfs has counted all anew' : undefined;
  }
  if (existsSync(image)) return undefined;
  if (findSystemProgram('mkfs.btrfs') !== undefined) return undefined;
  return 'disks have no limit of the kernel’s: install btrfs-progs (Debian and Ubuntu: apt-get install btrfs-progs)';
}
