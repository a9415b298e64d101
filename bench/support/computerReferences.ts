import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

/** Times a sandbox of the same kind, made without Atrium, up to the first output of its shell. */
export async function byHand(): Promise<number> {
  const begin = performance.now();
  const namespaces = ['user', 'pid', 'net', 'ipc', 'uts'].map((name) => `--unshare-${name}`);
  const links = ['bin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]);
  const args = [
    ...namespaces,
    '--ro-bind',
    '/usr',
    '/usr',
    ...links,
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    'sh',
    '-c',
    'echo awake',
  ];
  const child = spawn('bwrap', args, { env: { PATH: '/usr/bin' }, stdio: ['ignore', 'pipe', 'ignore'] });
  await once(child.stdout, 'data');
  const time = performance.now() - begin;
  await once(child, 'close');
  return time;
}

/** Times a process of the machine itself, to its exit. */
export async function bareProcess(): Promise<number> {
  const begin = performance.now();
  await once(spawn('true', [], { stdio: 'ignore' }), 'close');
  return performance.now() - begin;
}

/** Seconds for this process to read as much output from a pipe and write it to a file. */
export async function bareOutput(megabytes: number, folder: string): Promise<number> {
  const begin = performance.now();
  const child = spawn('head', ['-c', `${megabytes}M`, '/dev/zero'], { stdio: ['ignore', 'pipe', 'ignore'] });
  await pipeline(child.stdout, createWriteStream(join(folder, 'output')));
  return (performance.now() - begin) / 1_000;
}

/** The proportional memory (PSS) of all processes that this one started, in bytes. */
export function memoryOfChildren(): number {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const stat = read(`/proc/${name}/stat`);
    parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
  }
  const isOurs = (pid: number | undefined): boolean =>
    pid === process.pid || (pid !== undefined && pid > 1 && isOurs(parents.get(pid)));
  return [...parents.keys()]
    .filter((pid) => pid !== process.pid && isOurs(pid))
    .reduce((sum, pid) => sum + pssOf(pid), 0);
}

/** The proportional memory of an idle Node, in bytes. */
export async function memoryOfNode(): Promise<number> {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6); console.log(1)'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(child.stdout, 'data');
  const bytes = pssOf(child.pid ?? 0);
  child.kill('SIGKILL');
  return bytes;
}

function pssOf(pid: number): number {
  return 1_024 * Number(/^Pss:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0);
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
