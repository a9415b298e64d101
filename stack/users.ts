import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram, type StackContext } from './context.ts';
import { StackError } from './errors.ts';

/** The unprivileged user that a service runs as if root starts Atrium. */
export interface ServiceUser {
  name: string;
  uid: number;
  gid: number;
}

function lookUp(name: string): ServiceUser | undefined {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`));
  const fields = line?.split(':');
  return fields === undefined ? undefined : { name, uid: Number(fields[2]), gid: Number(fields[3]) };
}

/**
 * A user for each service, so that no service can read another's data. Made where it is missing. Undefined if root did
 * not start Atrium: then everything belongs to the user who did.
 */
export function serviceUser(context: StackContext, service: string): ServiceUser | undefined {
  if (process.getuid?.() !== 0 || process.platform !== 'linux') return undefined;
  const name = `atrium-${service}`;
  const known = lookUp(name);
  if (known !== undefined) return known;

  const useradd = findProgram('useradd', context.environment);
  const advice = `Make it (useradd --system ${name}), or start Atrium as a user who is not root.`;
  if (useradd === undefined) throw new StackError(`The system user ${name} is missing. ${advice}`);
  try {
    const args = ['--system', '--user-group', '--no-create-home', '--home-dir', '/nonexistent'];
    execFileSync(useradd, [...args, '--shell', '/usr/sbin/nologin', name], { stdio: 'ignore' });
  } catch {
    // Another start may have made it at the same moment. Look again before giving up.
  }
  const made = lookUp(name);
  if (made === undefined) throw new StackError(`The system user ${name} could not be made. ${advice}`);
  return made;
}

/** A service's data folder, private to its user, even if another user ran an earlier start. */
export function serviceFolder(context: StackContext, name: string, user: ServiceUser | undefined): string {
  const folder = join(context.servicesDir, name);
  try {
    mkdirSync(folder, { recursive: true });
    giveTo(folder, user);
    chmodSync(folder, 0o700);
    return folder;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EPERM' && code !== 'EACCES') throw error;
    throw new StackError(
      `${folder} belongs to another user, since an earlier start was theirs. Start as that user, or set ATRIUM_DATA_DIR to another folder.`,
    );
  }
}

/**
 * Makes `user` the owner of a folder and everything in it. Does nothing if the folder is theirs already, or without a
 * service user.
 */
export function giveTo(path: string, user: ServiceUser | undefined): void {
  if (user === undefined || statSync(path).uid === user.uid) return;
  execFileSync('chown', ['-R', `${user.uid}:${user.gid}`, path], { stdio: 'ignore' });
}
