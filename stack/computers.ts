import { join } from 'node:path';
import type { StackContext } from './context.ts';
import { cachedGvisor } from './gvisor.ts';
import { describePackages, installOptional, missingPackages } from './install.ts';

/** What computers run on, by program. */
const packages = { bwrap: 'bubblewrap', 'mkfs.btrfs': 'btrfs-progs' } as const;

/**
 * Installs what computers need, where root may do so, and names the folder for them. Without it everything else works:
 * what fails here is reported, and says itself again when the host of computers is made.
 */
export async function prepareComputers(context: StackContext): Promise<Record<string, string>> {
  if (process.platform !== 'linux') return {};
  await installOptional(context, missingPackages(packages, context), {
    purpose: 'sandboxes for computers',
    without: 'Computers are off, or have no limit on their disks.',
  });
  const { environment, servicesDir } = context;
  const runsc = environment.ATRIUM_COMPUTERS_RUNSC ? undefined : cachedGvisor(context);
  return {
    ...(!environment.ATRIUM_COMPUTERS_DIR && { ATRIUM_COMPUTERS_DIR: join(servicesDir, 'computers') }),
    ...(runsc !== undefined && { ATRIUM_COMPUTERS_RUNSC: runsc }),
  };
}

/** For `atrium doctor`: what is missing here for computers, and how it comes. */
export function describeSandboxPrograms(context: Pick<StackContext, 'environment'>): {
  missing: boolean;
  detail: string;
} {
  return describePackages(context, missingPackages(packages, context), Object.values(packages).join(', '));
}
