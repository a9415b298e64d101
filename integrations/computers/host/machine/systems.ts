import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { runHere } from '../../system/programs.ts';
import type { BaseName } from '../../types.ts';
import type { HostContext } from '../context.ts';
import type { Disks } from '../disks/disks.ts';
import { HostError } from '../hostErrors.ts';
import type { HostLayout } from '../layout.ts';
import type { OwnView } from './machine.ts';
import { openRanges, type Uids } from './uids.ts';

/** What a host needs for computers with root file systems of their own. */
export interface Systems {
  /** The users of such computers, a range for each. */
  ranges: Uids;
  /** The command that mounts such a root file system (`SystemMount`). */
  mounter: string[];
}

interface Requirements {
  layout: HostLayout;
  disks: Disks;
  uids: Uids | undefined;
  ownView: OwnView | undefined;
  hasCgroups: boolean;
  hasBubblewrap: boolean;
  /** The agent's program on this host. It also mounts root file systems. */
  agent: string;
}

/** Says what is missing if this machine cannot run computers with root file systems of their own. Tries a mount. */
export async function findSystems(found: Requirements): Promise<Systems | { missing: string }> {
  const { layout, disks, uids, ownView, hasCgroups, hasBubblewrap, agent } = found;
  if (!hasBubblewrap) return { missing: 'only bubblewrap can run them' };
  if (uids === undefined || ownView === undefined || !hasCgroups) return { missing: 'they need root, with cgroups' };
  if (disks.kind !== 'limited') return { missing: 'they need homes on btrfs' };
  const ranges = openRanges();
  if (ranges === undefined) return { missing: 'this machine has no ranges of users' };
  const mounter = [agent, 'mount'];
  const target = join(layout.dir, '.root');
  mkdirSync(target, { recursive: true, mode: 0o700 });
  const [file = '', ...view] = ownView;
  return runHere(file, [...view, ...mounter, layout.homes, target, String(ranges.first)], { timeoutMs: 10_000 }).then(
    () => ({ ranges, mounter }),
    (error: Error) => ({ missing: `this kernel cannot map the owners of their files (${error.message})` }),
  );
}

/** Throws `BASES_OFF`. */
export function requireSystems({ systems }: Pick<HostContext, 'systems'>): Systems {
  if ('missing' in systems) throw new HostError('BASES_OFF', systems.missing);
  return systems;
}

/**
 * The users of computers, or of those with a base. Undefined if computers share our user. Throws `BASES_OFF` if this
 * machine cannot run computers with a base.
 */
export function usersFor(
  context: Pick<HostContext, 'systems' | 'uids'>,
  { base }: { base?: BaseName | undefined },
): Uids | undefined {
  return base === undefined ? context.uids : requireSystems(context).ranges;
}
