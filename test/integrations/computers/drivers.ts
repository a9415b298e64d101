import { accessSync, constants } from 'node:fs';
import { trySandbox } from '../../../integrations/computers/bubblewrap/trySandbox.ts';
import type { HostOptions } from '../../../integrations/computers/host/host.ts';
import { findSystemProgram } from '../../../integrations/computers/host/programs.ts';
import { canBeOtherUser } from '../../support/otherUser.ts';

export interface TestedDriver {
  name: string;
  options: Partial<HostOptions> & { uid?: number };
  /** Why it cannot be run here. */
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

/** Every driver, in each way that it can run. */
export const drivers: TestedDriver[] = [
  { name: 'bubblewrap, as root', options: {}, ...given(refusal ?? asRoot) },
  {
    name: 'bubblewrap, as root without cgroups or an image',
    options: { without: ['cgroups', 'image'] },
    ...given(refusal ?? asRoot),
  },
  { name: 'bubblewrap, not as root', options: canBeOtherUser ? { uid: nobody } : {}, ...given(refusal ?? asUser) },
];

function given(missing: string | undefined): { missing?: string } {
  return missing === undefined ? {} : { missing };
}
