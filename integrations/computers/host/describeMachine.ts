import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { trySandbox } from '../bubblewrap/trySandbox.ts';
import { socketLimit } from './cgroups/computerCgroup.ts';
import { type CgroupRoots, findCgroups } from './cgroups/mounts.ts';
import { closedFolderAdvice } from './closedFolder.ts';
import { isMounted } from './disks/btrfs.ts';
import { type DiskRoom, describeRoom, isScarce, roomIn, roomInImage } from './disks/room.ts';
import { hostLayout } from './layout.ts';
import { findOwnView, terminalAdvice } from './ownView.ts';
import { findSystemProgram } from './programs.ts';
import { usualFirstUid } from './uids.ts';

/** For `atrium doctor`: whether this machine can run computers, and what of their limits would not hold. */
export interface MachineDescription {
  /** Why not, with what to do. */
  refused?: string;
  off: string[];
  /** For people: what there is for homes, where there are some. */
  room?: string;
}

/** Looks, and changes nothing. */
export async function describeMachine(dir: string): Promise<MachineDescription> {
  if (process.platform !== 'linux') return { refused: 'bubblewrap needs Linux', off: [] };
  const bwrap = findSystemProgram('bwrap');
  if (bwrap === undefined) {
    return { refused: 'bubblewrap is missing; install it (Debian and Ubuntu: apt-get install bubblewrap)', off: [] };
  }
  const asRoot = process.getuid?.() === 0;
  const refused = await trySandbox(bwrap, asRoot ? usualFirstUid : undefined);
  if (refused !== undefined) return { refused, off: [] };
  if (!asRoot) {
    return {
      off: ['not root: computers share one user, and CPU, memory, tasks and disks have no limit of the kernel’s'],
    };
  }
  const closed = closedFolderAdvice(dir);
  if (closed !== undefined) return { refused: closed, off: [] };
  const cgroups = findCgroups(readFileSync('/proc/self/mountinfo', 'utf8'), 'atrium-doctor');
  const lines = [
    'missing' in cgroups ? cgroups.missing : socketAdvice(cgroups.roots),
    (await findOwnView()) === undefined ? terminalAdvice : undefined,
    diskAdvice(dir),
  ];
  const room = roomFor(dir);
  if (room !== undefined && isScarce(room)) lines.push(`their disk is nearly full: ${describeRoom(room)}`);
  return { off: lines.filter((line) => line !== undefined), ...(room !== undefined && { room: describeRoom(room) }) };
}

/** Where neither version of cgroups counts what sockets keep. */
export function socketAdvice({ version, memory }: CgroupRoots): string | undefined {
  if (version === 2 || existsSync(join(memory, '..', socketLimit))) return undefined;
  return 'this kernel’s cgroups v1 do not limit the memory of sockets: boot with cgroups v2 (systemd.unified_cgroup_hierarchy=1)';
}

function roomFor(dir: string): DiskRoom | undefined {
  const { homes, image } = hostLayout(dir);
  if (isMounted(homes)) return roomInImage(homes, image);
  return existsSync(homes) && !existsSync(image) ? roomIn(homes) : undefined;
}

function diskAdvice(dir: string): string | undefined {
  const { homes, image } = hostLayout(dir);
  if (isMounted(homes) || existsSync(image)) return undefined;
  if (findSystemProgram('mkfs.btrfs') !== undefined) return undefined;
  return 'disks have no limit of the kernel’s: install btrfs-progs (Debian and Ubuntu: apt-get install btrfs-progs)';
}
