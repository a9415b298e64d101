import { accessSync, constants } from 'node:fs';
import { trySandbox } from '../../../integrations/computers/drivers/bubblewrap/driver.ts';
import { findDocker } from '../../../integrations/computers/drivers/docker/driver.ts';
import { findRunsc } from '../../../integrations/computers/drivers/gvisor/driver.ts';
import type { HostOptions } from '../../../integrations/computers/host/host.ts';
import { findSystemProgram } from '../../../integrations/computers/system/programs.ts';
import type { DriverName } from '../../../integrations/computers/types.ts';
import { canBeOtherUser } from '../../support/otherUser.ts';

export interface TestedDriver {
  name: string;
  driver: DriverName;
  /** Whether the driver uses everything that this machine can give it. */
  isFull?: true;
  options: Partial<HostOptions> & { uid?: number };
  /** Why this driver cannot run on this machine. */
  missing?: string;
}

const nobody = 65_534;
const bwrap = findSystemProgram('bwrap');
const refusal =
  bwrap === undefined ? 'bubblewrap is missing' : await trySandbox(bwrap, canBeOtherUser ? nobody : undefined);

/** Whether another user can read this checkout, to run a host from it. */
function isReadableByAll(): boolean {
  try {
    accessSync(import.meta.dirname, constants.R_OK);
    return !import.meta.dirname.startsWith('/root/');
  } catch {
    return false;
  }
}

const asRoot = canBeOtherUser ? undefined : 'this run is not root';
const asUser = canBeOtherUser && !isReadableByAll() ? 'another user cannot read this checkout' : undefined;

const asNobody = canBeOtherUser ? { uid: nobody } : {};
const bubblewrap: TestedDriver['options'] = { drivers: ['bubblewrap'] };

const found = findRunsc(process.env.ATRIUM_COMPUTERS_RUNSC || undefined);
const noGvisor = 'refused' in found ? found.refused : refusal;
const gvisor: TestedDriver['options'] = { drivers: ['gvisor'], ...('runsc' in found && found) };

const docker = {
  ...(process.env.ATRIUM_COMPUTERS_DOCKER && { address: process.env.ATRIUM_COMPUTERS_DOCKER }),
  ...(process.env.ATRIUM_COMPUTERS_DOCKER_IMAGE && { image: process.env.ATRIUM_COMPUTERS_DOCKER_IMAGE }),
};
const engine = await findDocker(docker);
const noDocker = 'refused' in engine ? engine.refused : undefined;

/** Every driver in each of its modes. */
export const drivers: TestedDriver[] = [
  { name: 'bubblewrap, as root', driver: 'bubblewrap', isFull: true, options: bubblewrap, ...given(refusal ?? asRoot) },
  {
    name: 'bubblewrap, as root without cgroups or an image',
    driver: 'bubblewrap',
    options: { ...bubblewrap, without: ['cgroups', 'image'] },
    ...given(refusal ?? asRoot),
  },
  {
    name: 'bubblewrap, not as root',
    driver: 'bubblewrap',
    options: { ...bubblewrap, ...asNobody },
    ...given(refusal ?? asUser),
  },
  { name: 'gVisor, as root', driver: 'gvisor', isFull: true, options: gvisor, ...given(noGvisor ?? asRoot) },
  {
    name: 'gVisor, not as root',
    driver: 'gvisor',
    options: { ...gvisor, ...asNobody },
    ...given(noGvisor ?? asUser),
  },
  { name: 'docker', driver: 'docker', isFull: true, options: { drivers: ['docker'], docker }, ...given(noDocker) },
];

function given(missing: string | undefined): { missing?: string } {
  return missing === undefined ? {} : { missing };
}
