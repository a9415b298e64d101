import { accessSync, chownSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cgroupConfinement } from '../../host/confinement/cgroupConfinement.ts';
import { installProgram } from '../../programs/install.ts';
import { findSystemProgram } from '../../system/programs.ts';
import { findBubblewrap } from '../bubblewrap/driver.ts';
import type { DriverSetting, OpenedDriver } from '../driver.ts';
import { complaintOf } from '../trial.ts';
import { type GvisorOptions, gvisorCommand } from './sandbox.ts';

/** Finds gVisor's program: at the configured path, or on the system's own. */
export function findRunsc(told: string | undefined): { runsc: string } | { refused: string } {
  if (told === undefined) {
    const runsc = findSystemProgram('runsc');
    return runsc === undefined
      ? { refused: 'runsc is missing; build it (npm run -s atrium -- build-gvisor), or set ATRIUM_COMPUTERS_RUNSC' }
      : { runsc };
  }
  try {
    accessSync(told, constants.X_OK);
    return { runsc: told };
  } catch {
    return { refused: `ATRIUM_COMPUTERS_RUNSC is ${told}, where there is no program` };
  }
}

/** The driver for sandboxes with gVisor's kernel, a program that runs inside a bubblewrap sandbox. */
export async function openGvisor(setting: DriverSetting, told: string | undefined): Promise<OpenedDriver> {
  const name = 'gvisor';
  const found = findRunsc(told);
  if ('refused' in found) return { name, ...found };
  const bubblewrap = await findBubblewrap(setting.firstUid);
  if ('refused' in bubblewrap) return { name, ...bubblewrap };
  const { agentDir, etcDir, agent, confinement, roots, firstUid, runtimeDir } = setting;
  const { machine, bwrap, prlimit } = bubblewrap;
  const runsc = join(runtimeDir, 'runsc');
  await installProgram(found.runsc, runsc);
  const common = { programs: { bwrap, prlimit, runsc }, machine, agentDir, etcDir };
  const refused = await tryGvisor(common, runtimeDir, firstUid);
  if (refused !== undefined) return { name, refused };
  return {
    name,
    confinement: roots === undefined ? confinement : cgroupConfinement(roots, 'whole'),
    hasDrive: true,
    sandbox: ({ homeDir, limits, readOnly, drive }) =>
      gvisorCommand({ ...common, homeDir, limits, readOnly, drive, command: agent }),
  };
}

const timeoutMs = 20_000;
const limits = { memoryMiB: 256, maxTasks: 64, maxProcesses: 1 };

/**
 * Tries a sandbox that does nothing, as the user who would own it. Returns undefined if it works, otherwise its
 * complaint.
 */
async function tryGvisor(
  common: Pick<GvisorOptions, 'programs' | 'machine' | 'agentDir' | 'etcDir'>,
  runtimeDir: string,
  uid: number | undefined,
): Promise<string | undefined> {
  const homeDir = mkdtempSync(join(runtimeDir, 'trial-'));
  try {
    if (uid !== undefined) chownSync(homeDir, uid, uid);
    const command = gvisorCommand({ ...common, homeDir, limits, readOnly: [], command: ['/usr/bin/true'] });
    const said = await complaintOf(command, { uid, timeoutMs, until: 'exit' });
    return said === undefined ? undefined : `gVisor cannot make a sandbox: ${said}`;
  } catch (error) {
    return `gVisor cannot be started: ${error instanceof Error ? error.message : String(error)}`;
  } finally {
    rmSync(homeDir, { recursive: true, force: true });
  }
}
