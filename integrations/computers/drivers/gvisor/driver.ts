import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { cgroupConfinement } from '../../host/confinement/cgroupConfinement.ts';
import { installProgram } from '../../programs/installProgram.ts';
import { findSystemProgram } from '../../system/programs.ts';
import { findBubblewrap } from '../bubblewrap/driver.ts';
import type { DriverSetting, OpenedDriver } from '../driver.ts';
import { gvisorCommand } from './sandbox.ts';
import { tryGvisor } from './tryGvisor.ts';

/** Where gVisor’s program is: as told, or on the system’s own path. */
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

/** Sandboxes with a kernel of their own: gVisor’s, which is a program, inside of a bubblewrap sandbox. */
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
    sandbox: ({ homeDir, limits, readOnly }) =>
      gvisorCommand({ ...common, homeDir, limits, readOnly, command: agent.fromProgram }),
  };
}
