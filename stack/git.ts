import { execFileSync } from 'node:child_process';
import { findProgram, type StackContext } from './context.ts';
import { canInstall, installOptional, missingPackages } from './install.ts';

/** Programs that git on our side needs, with their packages. `flock` locks mirrors between processes. */
const packages = { git: 'git', flock: 'util-linux' } as const;

/** The oldest version with `safe.bareRepository` and bundles of partial clones. */
const oldest = [2, 38];
/**
 * Versions that fix CVE-2025-48384 (a submodule path with a carriage return), as do all later ones. Debian fixed it
 * without a new version number, so its package revision is checked too.
 */
const mended = [
  [2, 43, 7],
  [2, 44, 4],
  [2, 45, 4],
  [2, 46, 4],
  [2, 47, 3],
  [2, 48, 2],
  [2, 49, 1],
  [2, 50, 1],
];
const mendedPackages: Record<string, string> = { '2.39.5': '1:2.39.5-0+deb12u3', '2.30.2': '1:2.30.2-1+deb11u5' };

type Looked = Pick<StackContext, 'environment'>;

/** Installs git where it is missing and root may do so. Git is optional: repositories report that it is missing. */
export async function prepareGit(context: StackContext): Promise<void> {
  const missing = missingPackages(packages, context);
  const names = missing.length === 0 ? [] : [...missing, 'ca-certificates'];
  await installOptional(context, names, { purpose: 'git', without: 'Repositories cannot be cloned.' });
}

/** For `atrium doctor`: the git version of this machine with its package revision, and what is wrong with it. */
export function describeGit(context: Looked): { state: 'ok' | 'off' | 'wrong'; detail: string } {
  const missing = missingPackages(packages, context);
  if (missing.length > 0) {
    const names = missing.join(' ');
    if (canInstall(context)) return { state: 'off', detail: `${names} missing; "npm start" installs it` };
    return { state: 'wrong', detail: `missing; install it (Debian and Ubuntu: apt-get install ${names})` };
  }
  const version = /\d+(?:\.\d+)+/.exec(ask('git', ['--version'], context) ?? '')?.[0];
  if (version === undefined) return { state: 'wrong', detail: '"git --version" answers no version' };
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg's own placeholder
  const revision = ask('dpkg-query', ['--show', '--showformat=${Version}', 'git'], context);
  const detail = revision === undefined ? version : `${version} (package ${revision})`;
  return judgeGit(
    version,
    revision,
    detail,
    (a, b) => ask('dpkg', ['--compare-versions', a, 'ge', b], context) !== undefined,
  );
}

/** Judges a version, and the package revision if there is one. */
export function judgeGit(
  version: string,
  revision: string | undefined,
  detail: string,
  isAtLeast: (revision: string, other: string) => boolean,
): { state: 'ok' | 'off' | 'wrong'; detail: string } {
  const numbers = version.split('.').map(Number);
  if (compare(numbers, oldest) < 0)
    return { state: 'wrong', detail: `${detail}; it must be ${oldest.join('.')} or newer` };
  const newest = mended.at(-1) ?? [];
  const branch = mended.find(([major, minor]) => major === numbers[0] && minor === numbers[1]);
  const isMended = { state: 'ok', detail: `${detail}; this version fixes CVE-2025-48384` } as const;
  if (branch === undefined ? compare(numbers, newest) >= 0 : compare(numbers, branch) >= 0) return isMended;
  const known = mendedPackages[version];
  if (revision !== undefined && known !== undefined && isAtLeast(revision, known)) return isMended;
  const advice = 'Atrium cannot tell whether this version fixes CVE-2025-48384: update the package';
  return {
    state: 'off',
    detail: `${detail}; ${known === undefined ? advice : `update it to ${known}, which fixes CVE-2025-48384`}`,
  };
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [index, number] of b.entries()) {
    const difference = (a[index] ?? 0) - number;
    if (difference !== 0) return difference;
  }
  return 0;
}

function ask(program: string, args: string[], { environment }: Looked): string | undefined {
  const path = findProgram(program, environment);
  if (path === undefined) return undefined;
  try {
    return execFileSync(path, args, { encoding: 'utf8', timeout: 5_000, stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}
