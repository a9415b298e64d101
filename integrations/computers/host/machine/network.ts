import { closeSync, openSync, readSync } from 'node:fs';
import { run } from '../../spawner/spawner.ts';
import { ifThere } from '../../system/ifThere.ts';
import type { ComputerRecord } from '../records.ts';

/**
 * Settings of one computer's network, which root sets from outside: default socket buffers, and how much is kept of
 * closed connections. The cgroup bounds all of them together, if it can. Some kernels do not allow such settings for a
 * single network.
 */
const bounds = {
  'ipv4/tcp_rmem': '4096 131072 1048576',
  'ipv4/tcp_wmem': '4096 16384 1048576',
  'ipv4/ipfrag_high_thresh': '1048576',
  'ipv4/tcp_max_tw_buckets': '4096',
  'ipv4/tcp_fin_timeout': '15',
  'ipv4/tcp_orphan_retries': '1',
  'core/optmem_max': '20480',
  'core/rmem_max': '212992',
  'core/wmem_max': '212992',
};

const script = [
  'set -e; cd /proc/sys/net',
  ...Object.entries(bounds).map(([file, value]) => `{ echo ${value} > ${file}; } 2>/dev/null || :`),
].join('\n');

/** Sets up the network of a sandbox, as root, before any program of its tenant runs. */
export async function prepareNetwork(nsenter: string, { run: started }: ComputerRecord): Promise<void> {
  await run(nsenter, [`--net=/proc/${started?.sandbox?.init.pid}/ns/net`, '--', '/bin/sh', '-c', script], {
    timeoutMs: 5_000,
  });
}

/** At most this much of the list is read: a few thousand sockets. A computer usually has some dozens. */
const mostListed = 256 * 1024;
const mostBytes = 32 * 1_048_576;

/**
 * Whether the netlink sockets of a sandbox hold too much. No cgroup counts the kernel's unread answers, so the host
 * checks them from time to time.
 */
export function holdsTooMuchNetlink(initPid: number): boolean {
  const list = ifThere(() => readStart(`/proc/${initPid}/net/netlink`));
  return list !== undefined && (list.length >= mostListed || netlinkBytes(list) > mostBytes);
}

/** The sum of the columns `Rmem` (the fifth) and `Wmem` (the sixth). */
function netlinkBytes(list: string): number {
  const rows = list.split('\n').slice(1);
  return rows.reduce((sum, row) => {
    const [, , , , received = 0, sent = 0] = row.trim().split(/\s+/);
    return sum + Number(received) + Number(sent);
  }, 0);
}

/** Reads the start of a file in /proc, which has no size and gives a few kilobytes at a time. */
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
