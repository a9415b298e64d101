import { readFileSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
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
