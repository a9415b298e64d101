import { closeSync, openSync, readSync } from 'node:fs';
import { ifThere } from '../../system/ifThere.ts';

/** As much of the list as is read: a few thousand sockets, where a computer has some dozens at most. */
const mostListed = 256 * 1024;
const mostBytes = 32 * 1_048_576;

/**
 * Whether the netlink sockets of a sandbox hold more than they should. What the kernel answers to them, without being
 * read, is counted by no cgroup and has no limit of its own for a network, so it is looked at from time to time.
 */
export function holdsTooMuchNetlink(initPid: number): boolean {
  const list = ifThere(() => readStart(`/proc/${initPid}/net/netlink`));
  return list !== undefined && (list.length >= mostListed || netlinkBytes(list) > mostBytes);
}

/** The sum of the column `Rmem`, the fifth, and of `Wmem`. */
export function netlinkBytes(list: string): number {
  const rows = list.split('\n').slice(1);
  return rows.reduce((sum, row) => {
    const [, , , , received = 0, sent = 0] = row.trim().split(/\s+/);
    return sum + Number(received) + Number(sent);
  }, 0);
}

/** A file in /proc tells no size, and gives a few kilobytes at a time. */
function readStart(path: string): string {
  const descriptor = openSync(path, 'r');
  try {
    const buffer = Buffer.allocUnsafe(mostListed);
    let length = 0;
    for (let read = 1; read > 0 && length < mostListed; length += read) {
      read = readSync(descriptor, buffer, length, mostListed - length, null);
    }
    return buffer.toString('latin1', 0, length);
  } finally {
    closeSync(descriptor);
  }
}
