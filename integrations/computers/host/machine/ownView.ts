import { runHere } from '../../spawner/runHere.ts';
import { findSystemProgram } from '../../system/programs.ts';

/** Of one computer: those that the API may start (`maxProcesses`), usually, and as many of its own. */
export const maxTerminals = 128;

/**
 * How a holder is started in mounts of its own, with terminals that only its computer has. All terminals of a machine
 * are of one number (`kernel.pty.max`), and only a mount of its own keeps a computer from taking those of all others.
 * What is mounted ends with the holder and its sandbox.
 */
export type OwnView = readonly string[];

const mount = `mount -t devpts -o newinstance,nosuid,noexec,ptmxmode=0666,mode=0620,max=${maxTerminals} devpts /dev/pts`;

export const terminalAdvice = 'a computer may take all terminals of this machine, since mounts of its own are refused';

/** Undefined where this machine does not let us, as in some containers. */
export async function findOwnView(): Promise<OwnView | undefined> {
  const unshare = findSystemProgram('unshare');
  if (unshare === undefined) return undefined;
  const view = [unshare, '--mount', '--propagation', 'slave', '/bin/sh', '-c', `${mount} && exec "$@"`, 'sh'];
  const [file, ...args] = view as [string, ...string[]];
  return runHere(file, [...args, '/bin/true'], { timeoutMs: 5_000 }).then(
    () => view,
    () => undefined,
  );
}
