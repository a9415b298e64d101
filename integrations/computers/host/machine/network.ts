import { run } from '../../system/run.ts';
import type { ComputerRecord } from '../records.ts';

/**
 * Of the network of one computer, as root sets them from outside: what its sockets may keep of the kernel’s memory,
 * where nothing asks for more, and how much is kept of connections that are over. The cgroup bounds all of them
 * together, where it can. Not every kernel lets a network have its own.
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

/** Sets up the network of a sandbox in which nothing of its tenant’s runs yet, as root. */
export async function prepareNetwork(nsenter: string, { run: started }: ComputerRecord): Promise<void> {
  await run(nsenter, [`--net=/proc/${started?.sandbox?.init.pid}/ns/net`, '--', '/bin/sh', '-c', script], {
    timeoutMs: 5_000,
  });
}
