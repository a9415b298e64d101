import { existsSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, resolve } from 'node:path';
import { ifThere } from '../../system/ifThere.ts';
import { findSystemProgram, runHere } from '../../system/programs.ts';
import { inMountinfo } from '../disks/image.ts';

const mebibyte = 1_048_576;
/** The share of the machine's tasks that computers do not get. */
const tasksLeft = 1 / 4;

/** The limits of all computers together, so that the machine always keeps something for itself. */
export interface HostLimits {
  memoryMiB: number;
  tasks: number;
}

/** The machine keeps a tenth of the memory, at least 1 GiB, but no more than half. */
export function hostLimits(givenMiB?: number, totalMiB = Math.floor(totalmem() / mebibyte)): HostLimits {
  const left = Math.min(Math.max(1_024, totalMiB / 10), totalMiB / 2);
  const memoryMiB = Math.min(givenMiB ?? Number.POSITIVE_INFINITY, Math.floor(totalMiB - left));
  const tasks = Math.min(settingOf('kernel/pid_max') ?? 32_768, settingOf('kernel/threads-max') ?? 32_768);
  return { memoryMiB, tasks: Math.floor(tasks * (1 - tasksLeft)) };
}

/**
 * Limits of the whole machine that one computer could use up, though its own memory is limited: open files (systemd's
 * own value) and terminals. The host only ever raises them.
 */
const leastSettings = { 'fs/file-max': '9223372036854775807', 'kernel/pty/max': '65536' };

/** Returns the settings that could not be raised, with advice. */
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
 * Advice if the computers' own users cannot reach the folder, otherwise undefined. A folder that does not exist yet
 * will be made so that they can.
 */
export function closedFolderAdvice(dir: string): string | undefined {
  let folder = resolve(dir);
  while (!existsSync(folder)) folder = dirname(folder);
  const own = existsSync(dir) ? realpathSync(dir) : undefined;
  for (folder = realpathSync(folder); ; folder = dirname(folder)) {
    if (folder !== own && (statSync(folder).mode & 0o001) === 0) {
      return (
        `${folder} may be entered by root only, and each computer has a user of its own, who has to pass through it: ` +
        `set ATRIUM_COMPUTERS_DIR to a folder elsewhere, such as /var/lib/atrium/computers, or chmod o+x ${folder}`
      );
    }
    if (folder === dirname(folder)) return undefined;
  }
}

/** The terminals of one computer: as many as the API may usually start (`maxProcesses`), and as many of its own. */
export const maxTerminals = 128;

/**
 * The command prefix that starts a holder in its own mount namespace, with terminals that only its computer has. The
 * terminals of a machine share one limit (`kernel.pty.max`), and only a separate mount keeps a computer from taking all
 * of them. The mounts end with the holder and its sandbox.
 */
export type OwnView = readonly string[];

const mount = `mount -t devpts -o newinstance,nosuid,noexec,ptmxmode=0666,mode=0620,max=${maxTerminals} devpts /dev/pts`;

export const terminalAdvice = 'a computer may take all terminals of this machine, since mounts of its own are refused';

// A copy of a mount keeps its device in use. So the homes of other Atriums on this machine, whose mounts a new namespace
// copies, are unmounted in it.
const listHomes = 'while read -r _ _ _ _ point _; do case $point in */.homes) printf "%s\\n" "$point"; esac; done';
const dropOthers =
  `for point in $(${listHomes} < /proc/self/mountinfo); do ` +
  '[ "$point" = "$own" ] || umount -l "$(printf %b "$point")"; done 2> /dev/null';

/** Undefined if this machine refuses such mounts, as some containers do. Other homes than `homes` are not in it. */
export async function findOwnView(homes = ''): Promise<OwnView | undefined> {
  const unshare = findSystemProgram('unshare');
  if (unshare === undefined) return undefined;
  const view = [
    unshare,
    '--mount',
    '--propagation',
    'slave',
    '/bin/sh',
    '-c',
    `own=$1; shift; set -f; ${dropOthers}; ${mount} && exec "$@"`,
  ];
  view.push('sh', inMountinfo(homes));
  const [file, ...args] = view as [string, ...string[]];
  return runHere(file, [...args, '/bin/true'], { timeoutMs: 5_000 }).then(
    () => view,
    () => undefined,
  );
}
