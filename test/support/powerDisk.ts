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

/** A disk whose power can be cut: what was written and not synced is lost, as on a machine that loses its power. */
export interface PowerDisk {
  /** Where it is mounted, for the processes that `on` starts and theirs. No other process sees it. */
  folder: string;
  /** The command line that mounts the disk in a mount namespace of its own, and runs `command` there. */
  on(command: readonly string[]): [string, ...string[]];
  /** The command line that runs `command` where the disk is mounted for this process. */
  beside(pid: number, command: readonly string[]): [string, ...string[]];
  /**
   * Loses all that was not synced, in one instant, and then kills every process that has the disk mounted. Returns when
   * nothing uses it any more, and its file system is as sound as its journal makes it.
   */
  cut(pid: number): Promise<void>;
  /** Kills every process that has it mounted, and removes it. */
  remove(): Promise<void>;
}

const sizeMiB = 6_144;
const mountWith = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c'] as const;
/** EXT4_IOC_SHUTDOWN with NOLOGFLUSH: the page cache and the end of the journal are lost (fs/ext4/ext4.h). */
const shutDown = `
import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack("I", 2))
`;

/** Why power cannot be cut on this machine; undefined where it can. */
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
  // Not a test's temporary folder: that is removed before a file's own clean-up, and a mount goes with the folder below it.
  const place = mkdtempSync(join(tmpdir(), 'atrium-power-'));
  chmodSync(place, 0o755); // the services' users go through it
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
      // The kernel lets go of the device when the last mount of it has gone.
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
      // Status 1 says that it has mended something, which a journal that was cut off may need.
      const { status, stdout } = spawnSync('e2fsck', ['-fy', image], { encoding: 'utf8' });
      if (status !== 0 && status !== 1) throw new Error(`The disk cannot be repaired:\n${stdout}`);
    },
    async remove() {
      await release();
      rmSync(place, { recursive: true, force: true });
    },
  };
}

/** The loop devices over the disk's image. */
function devicesOf(image: string): string[] {
  const { loopdevices = [] } = JSON.parse(
    execFileSync('losetup', ['--json', '--list'], { encoding: 'utf8' }) || '{}',
  ) as {
    loopdevices?: { name: string; 'back-file': string | null }[];
  };
  return loopdevices.filter(({ 'back-file': file }) => file?.startsWith(image)).map(({ name }) => name);
}

/** The processes that have one of the devices mounted. The mount is private, so all of them descend from the test's. */
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
    // It has ended.
  }
}
