import { join } from 'node:path';
import type { StackContext } from './context.ts';
import { cachedGvisor } from './gvisor.ts';
import { describePackages, installOptional, missingPackages } from './install.ts';

/** Programs that computers need, with their packages. */
const packages = { bwrap: 'bubblewrap', 'mkfs.btrfs': 'btrfs-progs', mmdebstrap: 'mmdebstrap' } as const;
/** The same for images of registries, where the operator allows some. */
const imagePackages = { skopeo: 'skopeo', umoci: 'umoci' } as const;

/**
 * Installs the packages for computers, if root may do so, and names the folder for them. Computers are optional, so a
 * failure is only reported here. The host of computers reports it again when it is made.
 */
export async function prepareComputers(context: StackContext): Promise<Record<string, string>> {
  if (process.platform !== 'linux') return {};
  await installOptional(context, missingPackages(packages, context), {
    purpose: 'sandboxes for computers',
    without: 'Computers are off, have no limit on their disks, or no environments.',
  });
  if (context.environment.ATRIUM_IMAGE_REGISTRIES) {
    await installOptional(context, missingPackages(imagePackages, context), {
      purpose: 'images of registries',
      without: 'Environments cannot begin with images.',
    });
  }
  const { environment, servicesDir } = context;
  const runsc = environment.ATRIUM_COMPUTERS_RUNSC ? undefined : cachedGvisor(context);
  return {
    ...(!environment.ATRIUM_COMPUTERS_DIR && { ATRIUM_COMPUTERS_DIR: join(servicesDir, 'computers') }),
    ...(runsc !== undefined && { ATRIUM_COMPUTERS_RUNSC: runsc }),
  };
}

/** For `atrium doctor`: what images of registries lack here, and how to get it. */
export function describeImagePrograms(context: Pick<StackContext, 'environment'>): {
  missing: boolean;
  detail: string;
} {
  return describePackages(context, missingPackages(imagePackages, context), Object.values(imagePackages).join(', '));
}

/** For `atrium doctor`: what computers lack here, and how to get it. */
export function describeSandboxPrograms(context: Pick<StackContext, 'environment'>): {
  missing: boolean;
  detail: string;
} {
  return describePackages(context, missingPackages(packages, context), Object.values(packages).join(', '));
}
