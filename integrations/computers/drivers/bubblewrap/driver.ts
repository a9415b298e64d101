import { readFileSync } from 'node:fs';
import { prepareNetwork } from '../../host/machine/network.ts';
import { findSystemProgram } from '../../system/programs.ts';
import type { Driver, DriverSetting, OpenedDriver } from '../driver.ts';
import type { Machine } from '../seccomp/syscalls.ts';
import { complaintOf } from '../trial.ts';
import { clearMountPoints, ensureHome } from './mountPoints.ts';
import { cellCommand, sandboxCommand } from './sandbox.ts';
import { mountPoints } from './system.ts';

interface BubblewrapPrograms {
  bwrap: string;
  prlimit: string;
  unshare: string;
  machine: Machine;
}

/** Finds the programs that a bubblewrap sandbox needs, or says what is missing. Tries a sandbox as its later owner. */
export async function findBubblewrap(uid: number | undefined): Promise<BubblewrapPrograms | { refused: string }> {
  if (process.platform !== 'linux') return { refused: 'bubblewrap needs Linux' };
  const machine = process.arch;
  if (machine !== 'x64' && machine !== 'arm64') return { refused: `there is no system-call filter for ${machine}` };
  const bwrap = findSystemProgram('bwrap');
  if (bwrap === undefined) {
    return { refused: 'bubblewrap is missing; install it (Debian and Ubuntu: apt-get install bubblewrap)' };
  }
  const prlimit = findSystemProgram('prlimit');
  const unshare = findSystemProgram('unshare');
  if (prlimit === undefined || unshare === undefined) {
    return { refused: 'prlimit or unshare is missing; install util-linux' };
  }
  const refused = await trySandbox(bwrap, uid);
  return refused === undefined ? { bwrap, prlimit, unshare, machine } : { refused };
}

/** Sandboxes of namespaces and a system-call filter on the host's kernel. */
export async function openBubblewrap(setting: DriverSetting): Promise<OpenedDriver> {
  const found = await findBubblewrap(setting.firstUid);
  if ('refused' in found) return { name: 'bubblewrap', ...found };
  const { agentDir, etcDir, agent, confinement } = setting;
  const { machine, ...programs } = found;
  const nsenter = findSystemProgram('nsenter');
  return {
    name: 'bubblewrap',
    confinement,
    hasDrive: true,
    sandbox({ homeDir, viewDir, limits, readOnly, system, drive }) {
      const { ownView } = setting;
      const given = { programs, machine, agentDir, etcDir, ownView, command: agent };
      const options = { ...given, homeDir, viewDir, limits, readOnly, system, drive };
      if (system !== undefined) {
        clearMountPoints(system.folder, mountPoints({ ...options, system }));
        ensureHome(system.folder);
      }
      return {
        ...sandboxCommand(options),
        view: viewDir,
        ...(nsenter !== undefined && { cell: cellCommand(options, nsenter) }),
      };
    },
    ...(nsenter !== undefined &&
      setting.firstUid !== undefined && { beforeOpen: (record) => prepareNetwork(nsenter, record) }),
  } satisfies Driver;
}

const timeoutMs = 10_000;
const trial = ['--unshare-user', '--unshare-pid', '--unshare-net', '--unshare-ipc', '--disable-userns'];
const view = ['--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--', '/bin/true'];

/** Tries a sandbox that does nothing, as the user who would own it. Returns undefined if it works, otherwise advice. */
export async function trySandbox(bwrap: string, uid?: number): Promise<string | undefined> {
  const command = { file: bwrap, args: [...trial, ...view], descriptors: [] };
  const options = { uid, timeoutMs, until: 'close' } as const;
  // A program that cannot be spawned rejects.
  const complaint = await complaintOf(command, options).catch((error: Error) => error.message);
  return complaint === undefined ? undefined : sandboxAdvice(complaint, readSetting);
}

/** Names the kernel setting that forbids user namespaces, and says how to change it. */
export function sandboxAdvice(complaint: string, read: (setting: string) => string | undefined): string {
  const off = 'user namespaces are off';
  if (read('user/max_user_namespaces') === '0') {
    return `${off} (user.max_user_namespaces is 0): sysctl -w user.max_user_namespaces=10000`;
  }
  if (read('kernel/unprivileged_userns_clone') === '0') {
    return `${off} (kernel.unprivileged_userns_clone is 0): sysctl -w kernel.unprivileged_userns_clone=1`;
  }
  if (read('kernel/apparmor_restrict_unprivileged_userns') === '1') {
    return `AppArmor keeps bwrap from user namespaces: give it a profile that has userns, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`;
  }
  return `bwrap cannot make a sandbox (${complaint}); in a container, allow it namespaces and its own /proc (docs/computers.md)`;
}

function readSetting(name: string): string | undefined {
  try {
    return readFileSync(`/proc/sys/${name}`, 'utf8').trim();
  } catch {
    return undefined;
  }
}
