import type { Environment } from '../config/index.ts';
import { findProgram } from './context.ts';
import { StackError } from './errors.ts';

export interface Identity {
  uid: number;
  gid: number;
}

/**
 * A command line whose process ends with this one, even when this one is killed: the kernel sends it SIGKILL
 * (`--pdeathsig`). With `identity` it runs as that user. Without `setpriv` (macOS) the command line stays as it is, and
 * the next start ends processes left running.
 */
export function tied(environment: Environment, command: string[], identity?: Identity): [string, ...string[]] {
  const [program = '', ...args] = command;
  const setpriv = process.platform === 'linux' ? findProgram('setpriv', environment) : undefined;
  if (setpriv === undefined) {
    if (identity === undefined) return [program, ...args];
    throw new StackError('The program "setpriv" is missing. Install util-linux, or start as a user who is not root.');
  }
  const user = identity && [`--reuid=${identity.uid}`, `--regid=${identity.gid}`, '--clear-groups', '--no-new-privs'];
  return [setpriv, '--pdeathsig', 'KILL', ...(user ?? []), '--', program, ...args];
}
