import { join } from 'node:path';
import { findProgram, type StackContext } from './context.ts';
import { StackError } from './errors.ts';
import { cachedGvisor } from './gvisor.ts';
import { canInstall, installPackages } from './install.ts';

/** What computers run on, by program. */
const packages = { bwrap: 'bubblewrap', 'mkfs.btrfs': 'btrfs-progs' } as const;

type Program = keyof typeof packages;

function missingPackages({ environment }: Pick<StackContext, 'environment'>): string[] {
  const programs = Object.keys(packages) as Program[];
  return programs.filter((program) => findProgram(program, environment) === undefined).map((name) => packages[name]);
}

/**
 * Installs what computers need, where root may do so, and names the folder for them. Without it everything else works:
 * what fails here is reported, and says itself again when the host of computers is made.
 */
export async function prepareComputers(context: StackContext): Promise<Record<string, string>> {
  if (process.platform !== 'linux') return {};
  const missing = missingPackages(context);
  if (missing.length > 0 && canInstall(context)) {
    try {
      await installPackages(context, missing, 'sandboxes for computers');
    } catch (error) {
      context.signal.throwIfAborted();
      if (!(error instanceof StackError)) throw error;
      context.report(`${error.message}. Computers are off, or have no limit on their disks.`);
    }
  }
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
  const missing = missingPackages(context);
  if (missing.length === 0) return { missing: false, detail: Object.values(packages).join(', ') };
  if (canInstall(context)) return { missing: false, detail: `${missing.join(', ')} missing; "npm start" installs it` };
  return { missing: true, detail: `missing; install it (Debian and Ubuntu: apt-get install ${missing.join(' ')})` };
}
