import { readSync } from 'node:fs';
import { endianness } from 'node:os';

export interface Endpoint {
  address: string;
  port: number;
}

/**
 * Formats an IPv4 socket address as Linux does in /proc/net/tcp: the address as a hexadecimal number in the machine's
 * byte order.
 */
function toHex({ address, port }: Endpoint): string {
  const bytes = Buffer.from(address.split('.').map(Number));
  const ordered = endianness() === 'LE' ? bytes.reverse() : bytes;
  return `${ordered.toString('hex')}:${port.toString(16).padStart(4, '0')}`.toUpperCase();
}

/**
 * The user of the process at the other end of a local connection, from the kernel's table of connections. Undefined if
 * the connection is not listed or no longer established. A socket that its process has closed shows user 0 and inode 0
 * in the table.
 */
export function peerUser(table: string, client: Endpoint, server: Endpoint): number | undefined {
  const row = new RegExp(`: ${toHex(client)} ${toHex(server)} 01 \\S+ \\S+ \\S+ +(\\d+) +\\d+ +(\\d+) `).exec(table);
  return row === null || row[2] === '0' ? undefined : Number(row[1]);
}

const chunkBytes = 64 * 1024;

/** Reads all of an open /proc/net/tcp in its present state. The kernel writes it anew for each read from position 0. */
export function readTable(descriptor: number): string {
  const chunks: Buffer[] = [];
  for (let position = 0; ; ) {
    const chunk = Buffer.alloc(chunkBytes);
    const count = readSync(descriptor, chunk, 0, chunkBytes, position);
    if (count === 0) return Buffer.concat(chunks).toString('latin1');
    chunks.push(chunk.subarray(0, count));
    position += count;
  }
}
