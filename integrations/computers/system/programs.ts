import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';

/** The system's own folders, regardless of this process's PATH. */
const folders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** The path of a system program. Undefined if it is not installed. */
export function findSystemProgram(name: string): string | undefined {
  return folders
    .map((folder) => `${folder}/${name}`)
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** What programs of the system see of the environment. */
export const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' };

/**
 * Runs a program of the system and returns its output. Rejects with its last complaint when it fails or takes too long.
 * It forks this process, so a process with much memory uses `run` of the spawner instead.
 */
export function runHere(
  file: string,
  args: string[],
  { timeoutMs = 20_000, signal: given }: { timeoutMs?: number; signal?: AbortSignal } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: environment,
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    });
    const kill = () => child.kill('SIGKILL');
    given?.addEventListener('abort', kill, { once: true });
    let output = '';
    let complaint = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaint = (complaint + text).slice(-2_000);
    });
    child.once('error', reject);
    child.once('close', (code, signal) => {
      given?.removeEventListener('abort', kill);
      if (code === 0) return resolve(output);
      reject(new Error(`${file} failed (${signal ?? code}): ${complaint.trim().split('\n').at(-1) ?? ''}`));
    });
  });
}
