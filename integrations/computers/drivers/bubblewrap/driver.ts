import { prepareNetwork } from '../../host/machine/network.ts';
import { findSystemProgram } from '../../system/programs.ts';
import type { Driver, DriverSetting, OpenedDriver } from '../driver.ts';
import type { Machine } from '../seccomp/syscalls.ts';
import { cellCommand, sandboxCommand } from './sandbox.ts';
import { trySandbox } from './trySandbox.ts';

export interface BubblewrapPrograms {
  bwrap: string;
  prlimit: string;
  machine: Machine;
}

/** What a bubblewrap sandbox needs of the machine, or what of it is missing. Tries one, as the user who would own it. */
export async function findBubblewrap(uid: number | undefined): Promise<BubblewrapPrograms | { refused: string }> {
  if (process.platform !== 'linux') return { refused: 'bubblewrap needs Linux' };
  const machine = process.arch;
  if (machine !== 'x64' && machine !== 'arm64') return { refused: `there is no system-call filter for ${machine}` };
  const bwrap = findSystemProgram('bwrap');
  if (bwrap === undefined) {
    return { refused: 'bubblewrap is missing; install it (Debian and Ubuntu: apt-get install bubblewrap)' };
  }
  const prlimit = findSystemProgram('prlimit');
  if (prlimit === undefined) return { refused: 'prlimit is missing; install util-linux' };
  const refused = await trySandbox(bwrap, uid);
  return refused === undefined ? { bwrap, prlimit, machine } : { refused };
}

/** Sandboxes of namespaces and a system-call filter, on the kernel of the host. */
export async function openBubblewrap(setting: DriverSetting): Promise<OpenedDriver> {
  const found = await findBubblewrap(setting.firstUid);
  if ('refused' in found) return { name: 'bubblewrap', ...found };
  const { agentDir, etcDir, agent, confinement } = setting;
  const { machine, ...programs } = found;
  const nsenter = findSystemProgram('nsenter');
  return {
    name: 'bubblewrap',
    confinement,
    sandbox({ homeDir, viewDir, limits, readOnly }) {
      const { ownView } = setting;
      const given = { programs, machine, agentDir, etcDir, ownView, command: agent.fromSnapshot };
      const options = { ...given, homeDir, viewDir, limits, readOnly };
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
