import { execFile } from 'node:child_process';
import { readlinkSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { lookUntil } from '../../../../base/async.ts';
import { type SandboxCommand, type SystemMount, usersOfSystem } from '../../protocol/holderSpec.ts';
import { ifThere } from '../../system/ifThere.ts';
import { type BegunSandbox, beginSandbox } from './sandbox.ts';

const run = promisify(execFile);
const namespaceMs = 10_000;
const mountMs = 10_000;

/**
 * Begins a sandbox with a root file system of its own. Its holder calls this as root, since only root may give a user
 * namespace more than one user, and mount files so that they belong to these. Throws if that fails.
 */
export async function beginSystem(
  command: SandboxCommand,
  system: SystemMount,
  become: { uid: number; gid: number },
): Promise<BegunSandbox> {
  const [mounter = '', ...args] = system.mounter;
  // The sandbox's process begins with a copy of the mounts.
  await run(mounter, [...args, system.folder, system.target, String(system.firstUid)], { timeout: mountMs });
  const begun = beginSandbox(command, become);
  const { child, ended } = begun;
  try {
    const pid = await hasNamespace(begun);
    for (const map of ['uid_map', 'gid_map'])
      writeFileSync(`/proc/${pid}/${map}`, `0 ${system.firstUid} ${usersOfSystem}\n`);
    return begun;
  } catch (error) {
    child.kill('SIGKILL');
    await ended;
    throw error;
  }
}

/** Returns the pid of the sandbox's process once it is in a user namespace of its own. */
async function hasNamespace({ child: { pid }, ended }: BegunSandbox): Promise<number> {
  const own = readlinkSync('/proc/self/ns/user');
  const isApart = () => {
    const theirs = ifThere(() => readlinkSync(`/proc/${pid}/ns/user`));
    return theirs !== undefined && theirs !== own;
  };
  const over = ended.then((how) => Promise.reject(new Error(how)));
  over.catch(() => undefined); // also when it ends later
  const found = lookUntil(isApart, Boolean, { firstMs: 1, mostMs: 5, forMs: namespaceMs });
  if (pid === undefined || !(await Promise.race([found, over]))) throw new Error('the sandbox got no users of its own');
  return pid;
}
