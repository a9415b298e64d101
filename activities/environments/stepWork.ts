import { posix } from 'node:path';
import { DomainError } from '../../base/errors.ts';
import type { HostClient } from '../../integrations/computers/hostClient.ts';
import type { StartProcess } from '../../integrations/computers/types.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import type { CopiedFiles, Plan } from '../../models/environments/steps.ts';

/** Some files are programs, and the drive does not say which. */
const mode = 0o755;
const usualEnv = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };

/** Runs a command as another user. The arguments are the user and the command. */
const asUser = `user="$1"
HOME="$(getent passwd "$user" | cut -d: -f6)"; HOME="\${HOME:-/}"; USER="$user"; LOGNAME="$user"
export HOME USER LOGNAME
exec setpriv --reuid="$user" --regid="$(id -g -- "$user")" --init-groups -- /bin/sh -c "$2"`;

/** The process that does a step, but for the files that it copies. Undefined if it has none. */
export function processOfStep({ step, setting }: Plan): Omit<StartProcess, 'processId'> | undefined {
  if ('run' in step) {
    const { env, user, workdir } = setting;
    const command = user === null ? [step.run] : [asUser, 'sh', user, step.run];
    return { command: ['/bin/sh', '-c', ...command], cwd: workdir ?? '/', env, usualEnv };
  }
  if ('workdir' in step) return { command: ['mkdir', '-p', '--', step.workdir], cwd: '/', usualEnv };
  const { to, owner } = step.copy;
  if (owner === undefined) return undefined;
  const group = 'chown -R -- "$1:$(id -g -- "$1")" "$2"';
  return { command: ['/bin/sh', '-c', group, 'sh', owner, to], cwd: '/', usualEnv };
}

/** Writes the files of a step that copies. Each is written as a whole, so this may run twice. */
export async function writeFiles(
  { storage }: { storage: Pick<ObjectStore, 'read'> },
  client: HostClient,
  to: string,
  files: CopiedFiles,
  signal: AbortSignal,
): Promise<void> {
  for (const [path, { objectKey }] of Object.entries(files)) {
    signal.throwIfAborted();
    const bytes = await storage.read(objectKey).catch((error: unknown) => {
      if (error instanceof DomainError && error.code === 'CONTENT_MISSING') throw fileGone();
      throw error;
    });
    await client.writeFile(placeOf(path, to), bytes, { mode, parents: true, signal });
  }
}

/** A single file is `./` and its name, and has a path of its own unless that ends with a slash. */
function placeOf(path: string, to: string): string {
  return path.startsWith('./') && !to.endsWith('/') ? to : posix.join(to, path);
}

/** The drive keeps the former content of a file only for a while. */
function fileGone(): DomainError {
  return new DomainError('conflict', 'ENVIRONMENT_FILE_GONE', 'A file that is copied was removed or changed.');
}
