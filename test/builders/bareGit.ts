import { join } from 'node:path';
import type { GitConfig } from '../../config/git.ts';
import { Git } from '../../integrations/git/process/git.ts';
import { lockFolder } from '../../integrations/git/process/lock.ts';
import { temporaryFolder } from '../support/folders.ts';
import { gitIn } from '../support/gitRepository.ts';

/** The product's git in a new bare repository that it has locked. */
export async function buildBareGit(signal: AbortSignal): Promise<{ git: Git } & AsyncDisposable> {
  const home = temporaryFolder();
  const dir = join(home, 'bare.git');
  gitIn(home, 'init', '--quiet', '--bare', dir);
  const lock = await lockFolder(`${dir}.lock`, signal);
  const config = { maxBytes: 2 ** 31, memoryBytes: 2 ** 31, caFile: undefined } as GitConfig;
  const git = new Git({ config, dir, home, lock: lock.descriptor, signal });
  return { git, [Symbol.asyncDispose]: () => lock[Symbol.asyncDispose]() };
}
