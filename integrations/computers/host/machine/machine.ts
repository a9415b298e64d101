import { existsSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, resolve } from 'node:path';
import { findSystemProgram, runHere } from '../../system/programs.ts';
import { ifThere } from '../../system/ifThere.ts';

const mebibyte = 1_048_576;
/** Of all tasks of the machine, those that are not for computers. */
const tasksLeft = 1 / 4;

/** What all computers of a host may have together, so that the machine itself always has something left. */
export interface HostLimits {
  memoryMiB: number;
  tasks: number;
}

/** A tenth of the memory is the machine’s, at least 1 GiB, unless that is more than half. */
export function hostLimits(givenMiB?: number, totalMiB = Math.floor(totalmem() / mebibyte)): HostLimits {
  const left = Math.min(Math.max(1_024, totalMiB / 10), totalMiB / 2);
  const memoryMiB = Math.min(givenMiB ?? Number.POSITIVE_INFINITY, Math.floor(totalMiB - left));
  const tasks = Math.min(settingOf('kernel/pid_max') ?? 32_768, settingOf('kernel/threads-max') ?? 32_768);
  return { memoryMiB, tasks: Math.floor(tasks * (1 - tasksLeft)) };
}

/**
 * Numbers of the whole machine that one computer could use up, though what it takes of each counts as its memory or has
 * a limit of its own: open files, as systemd sets it, and terminals. They are only ever raised.
 */
const leastSettings = { 'fs/file-max': '9223372036854775807', 'kernel/pty/max': '65536' };

/** Says which could not be raised, with what to do. */
export function raiseMachineSettings(): string[] {
  return Object.entries(leastSettings).flatMap(([name, least]) => {
    if (BigInt(settingText(name) ?? least) >= BigInt(least)) return [];
    try {
      writeFileSync(`/proc/sys/${name}`, least);
      return [];
    } catch {
      return [`one computer may use up ${name.replaceAll('/', '.')}: sysctl -w ${name.replaceAll('/', '.')}=${least}`];
    }
  });
}

const settingText = (name: string) => ifThere(() => readFileSync(`/proc/sys/${name}`, 'utf8').trim());

function settingOf(name: string): number | undefined {
  const text = settingText(name);
  return text === undefined ? undefined : Number(text);
}

/**
 * What to do where computers, which have users of their own, could not reach their folder. Undefined where they can; a
 * folder that is not there yet will be one that they can pass through.
 */
export function closedFolderAdvice(dir: string): string | undefined {
  let folder = resolve(dir);
  while (!existsSync(folder)) folder = dirname(folder);
  for (folder = realpathSync(folder); ; folder = dirname(folder)) {
    if (folder !== realpathIfThere(dir) && (statSync(folder).mode & 0o001) === 0) {
      return (
        `${folder} may be entered by root only, and each computer has a user of its own, who has to pass through it: ` +
        `set ATRIUM_COMPUTERS_DIR to a folder elsewhere, such as /var/lib/atrium/computers, or chmod o+x ${folder}`
      );
    }
    if (folder === dirname(folder)) return undefined;
  }
}

/** Its own mode is set by the host. */
function realpathIfThere(dir: string): string | undefined {
  return existsSync(dir) ? realpathSync(dir) : undefined;
}

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
