import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canBeOtherUser } from './otherUser.ts';
import { waitFor } from './waitFor.ts';

/** A disk whose power can be cut: data written but not synced is lost, as on a machine that loses power. */
export interface PowerDisk {
  /** The mount point, for processes that `on` starts and their children. Other processes do not see the disk. */
  folder: string;
  /** The command line that mounts the disk in a new mount namespace and runs `command` there. */
  on(command: readonly string[]): [string, ...string[]];
  /** The command line that runs `command` in the mount namespace of this process. */
  beside(pid: number, command: readonly string[]): [string, ...string[]];
  /**
   * Loses all unsynced data at one instant, then kills every process that has the disk mounted. Returns when the disk
   * is unused and its file system is repaired as far as its journal allows.
   */
  cut(pid: number): Promise<void>;
  /** Kills every process that has the disk mounted, and removes the disk. */
  remove(): Promise<void>;
}

const sizeMiB = 6_144;
const mountWith = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c'] as const;
/** EXT4_IOC_SHUTDOWN with NOLOGFLUSH: the page cache and the end of the journal are lost (fs/ext4/ext4.h). */
const shutDown = `
import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack("I", 2))
`;

/** Why this machine cannot cut the power. Undefined if it can. */
export async function powerCutMissing(): Promise<string | undefined> {
  if (!canBeOtherUser) return 'only root on Linux can mount a disk of its own';
  const absent = ['mkfs.ext4', 'e2fsck', 'losetup', 'unshare', 'nsenter', 'python3'].filter(
    (program) => spawnSync(program, ['--version']).error !== undefined,
  );
  if (absent.length > 0) return `${absent.join(', ')} cannot be run`;
  const disk = createPowerDisk(64);
  try {
    const [command, ...args] = disk.on(['python3', '-c', shutDown, disk.folder]);
    const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' });
    return status === 0 ? undefined : `a disk of its own cannot be mounted and shut down: ${stderr.trim()}`;
  } finally {
    await disk.remove();
  }
}

export function createPowerDisk(mebibytes = sizeMiB): PowerDisk {
  // Not a test's temporary folder: it is removed before the cleanup of the test file, while the disk is still mounted.
  const place = mkdtempSync(join(tmpdir(), 'atrium-power-'));
  chmodSync(place, 0o755); // the services' users must pass through it
  const image = join(place, 'disk.img');
  const folder = join(place, 'disk');
  mkdirSync(folder);
  writeFileSync(image, '');
  truncateSync(image, mebibytes * 1_048_576); // a sparse file
  execFileSync('mkfs.ext4', ['-q', '-F', '-E', 'lazy_itable_init=1', image]);

  async function release(): Promise<void> {
    await waitFor('every process that has the disk mounted to end', () => {
      const devices = devicesOf(image);
      for (const pid of pidsOn(devices)) kill(pid);
      // The kernel releases the device after its last unmount.
      return devices.length === 0;
    });
  }

  return {
    folder,
    on: (command) => [...mountWith, 'mount -o loop "$0" "$1" && shift && exec "$@"', image, folder, ...command],
    beside: (pid, command) => ['nsenter', `--mount=/proc/${pid}/ns/mnt`, '--', ...command],
    async cut(pid) {
      execFileSync('python3', ['-c', shutDown, join('/proc', `${pid}`, 'root', folder)]);
      await release();
      // Status 1 means that it repaired something, which is normal for a truncated journal.
      const { status, stdout } = spawnSync('e2fsck', ['-fy', image], { encoding: 'utf8' });
      if (status !== 0 && status !== 1) throw new Error(`The disk cannot be repaired:\n${stdout}`);
    },
    async remove() {
      await release();
      rmSync(place, { recursive: true, force: true });
    },
  };
}

/** The loop devices of the disk's image. */
function devicesOf(image: string): string[] {
  const { loopdevices = [] } = JSON.parse(
    execFileSync('losetup', ['--json', '--list'], { encoding: 'utf8' }) || '{}',
  ) as {
    loopdevices?: { name: string; 'back-file': string | null }[];
  };
  return loopdevices.filter(({ 'back-file': file }) => file?.startsWith(image)).map(({ name }) => name);
}

/**
 * The processes that have one of the devices mounted. The mount is private, so all of them descend from the test's
 * processes.
 */
function pidsOn(devices: readonly string[]): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => devices.some((device) => mountsOf(pid).includes(` ${device} `))).map(Number);
}

function mountsOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, 'utf8');
  } catch {
    return ''; // it has ended
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has already ended.
  }
}
