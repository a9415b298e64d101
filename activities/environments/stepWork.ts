import { posix } from 'node:path';
import { DomainError } from '../../base/errors.ts';
import type { HostClient } from '../../integrations/computers/hostClient.ts';
import type { StartProcess } from '../../integrations/computers/types.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import type { CopiedFiles, Plan } from '../../models/environments/steps.ts';

/** Some files are programs, and the drive does not say which. */
const mode = 0o755;
/** The agent's program inside, which runs a command as another user. */
const agent = '/opt/atrium/agent';
const home = '/home/user';

/** The process that does a step, but for the files that it copies. Undefined if there is nothing more to do. */
export function processOfStep(
  { step, setting }: Plan,
  files: CopiedFiles,
): Omit<StartProcess, 'processId'> | undefined {
  if ('base' in step) return undefined;
  if ('run' in step) {
    const { env, user, workdir } = setting;
    const asUser = user === null ? [] : [agent, 'as', user];
    return { command: [...asUser, '/bin/sh', '-c', step.run], cwd: workdir ?? '/', env };
  }
  if ('workdir' in step) return { command: ['mkdir', '-p', '--', step.workdir], cwd: '/' };
  if ('user' in step) return { command: ['chown', '-R', '--', step.user, home], cwd: '/' };
  const { to, owner } = step.copy;
  if (owner === undefined) return undefined;
  const tops = new Set(Object.keys(files).map((path) => placeOf(topOf(path), to)));
  if (tops.size === 0) return undefined;
  return { command: ['/bin/sh', '-c', chown, 'sh', owner, ...tops], cwd: '/' };
}

/** What is directly in the folder that gets the files: this file, or the folder above it. */
function topOf(path: string): string {
  return path.startsWith('./') ? path : (path.split('/')[0] ?? path);
}

/** The arguments are the owner, and what that gets. A user gets it with the user's own group. */
const chown =
  'owner="$1"; shift; case "$owner" in *:*) ;; *) owner="$owner:$(id -g -- "$owner")" ;; esac; chown -R -- "$owner" "$@"';

/**
 * Writes the files of a step that copies. Each is written as a whole, so this may run twice. Returns false if the step is
 * over meanwhile: a worker that was held up must not write over what later steps have changed.
 */
export async function writeFiles(
  { storage }: { storage: Pick<ObjectStore, 'read'> },
  client: HostClient,
  to: string,
  files: CopiedFiles,
  { signal, isOver }: { signal: AbortSignal; isOver: () => Promise<boolean> },
): Promise<boolean> {
  for (const [path, { objectKey }] of Object.entries(files)) {
    signal.throwIfAborted();
    const bytes = await storage.read(objectKey).catch((error: unknown) => {
      if (error instanceof DomainError && error.code === 'CONTENT_MISSING') throw fileGone();
      throw error;
    });
    if (await isOver()) return false;
    await client.writeFile(placeOf(path, to), bytes, { mode, parents: true, signal });
  }
  return true;
}

/** A single file is `./` and its name, and has a path of its own unless that ends with a slash. */
function placeOf(path: string, to: string): string {
  return path.startsWith('./') && !to.endsWith('/') ? to : posix.join(to, path);
}

/** The drive keeps the former content of a file only for a while. */
function fileGone(): DomainError {
  return new DomainError('conflict', 'ENVIRONMENT_FILE_GONE', 'A file that is copied was removed or changed.');
}
