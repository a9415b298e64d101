import { lstat, readFile, realpath } from 'node:fs/promises';
import { Refusal } from '../../protocol/agentRequests.ts';

/**
 * Throws `FILE_ACCESS_DENIED` for the home, a mount point, and a folder that contains one of them, however the path is
 * spelled. Every operation that deletes, moves or replaces a path calls this before it changes anything, for its source
 * and for its target. Without the check `rm` and `mv` would empty such a folder before they fail.
 */
export async function refuseKept(path: Buffer): Promise<void> {
  const stats = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  // The operation changes the link itself. Its target stays.
  if (!stats || stats.isSymbolicLink()) return;
  const real = await realpath(path, { encoding: 'buffer' });
  const folder = Buffer.concat([real, Buffer.from('/')]);
  const kept = [Buffer.from(process.cwd()), ...(await mountPoints())];
  const isKept = kept.some((each) => each.equals(real) || each.subarray(0, folder.length).equals(folder));
  if (isKept || real.equals(root)) throw new Refusal('FILE_ACCESS_DENIED');
}

const root = Buffer.from('/');

async function mountPoints(): Promise<Buffer[]> {
  const mounts = await readFile('/proc/self/mountinfo', 'latin1');
  return mounts.split('\n').flatMap((line) => {
    const point = line.split(' ')[4];
    const unescaped = point?.replace(/\\(\d{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    return unescaped === undefined ? [] : [Buffer.from(unescaped, 'latin1')];
  });
}
