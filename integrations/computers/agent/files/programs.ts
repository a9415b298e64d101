import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { Refusal } from '../../protocol/agentRequests.ts';

const fullDisk = /No space left on device|Disk quota exceeded/;

/**
 * Runs a program on paths that need not be UTF-8. Node cannot pass such bytes as arguments, so xargs does. Throws
 * `DISK_FULL` or `FILE_ACCESS_DENIED`.
 */
export async function run(program: string, args: string[], ...paths: Buffer[]): Promise<void> {
  await access('/usr/bin/xargs', constants.X_OK);
  const child = spawn('/usr/bin/xargs', ['-0', program, ...args], { env: {}, stdio: ['pipe', 'ignore', 'pipe'] });
  let isFull = false;
  child.stderr.on('data', (complaint: Buffer) => {
    isFull ||= fullDisk.test(complaint.toString('latin1'));
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(Buffer.concat(paths.flatMap((path) => [path, Buffer.alloc(1)])));
  const code = await new Promise((resolve) => {
    child.once('error', () => resolve(1));
    child.once('close', resolve);
  });
  if (code !== 0) throw new Refusal(isFull ? 'DISK_FULL' : 'FILE_ACCESS_DENIED');
}

/** `rm` cannot empty a folder that its owner may not write. */
const removeWritable = 'find "$0" -type d ! -perm -u=rwx -exec chmod u+rwx {} ";"; exec rm -rf -- "$0"';

/** Removes everything at a path. Throws `FILE_ACCESS_DENIED` if anything is left. */
export async function removeTree(path: Buffer): Promise<void> {
  await run('rm', ['-rf', '--'], path).catch(() => run('sh', ['-c', removeWritable], path));
}
