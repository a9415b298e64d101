import { readSync } from 'node:fs';
import { endianness } from 'node:os';

export interface Endpoint {
  address: string;
  port: number;
}

/**
 * As Linux writes an IPv4 socket address in /proc/net/tcp: the address as a number of the machine's byte order, in
 * hexadecimal.
 */
function toHex({ address, port }: Endpoint): string {
  const bytes = Buffer.from(address.split('.').map(Number));
  const ordered = endianness() === 'LE' ? bytes.reverse() : bytes;
  return `${ordered.toString('hex')}:${port.toString(16).padStart(4, '0')}`.toUpperCase();
}

/**
 * The user whose process is at the other end of a connection on this machine, as the kernel's table of connections has
 * it. Undefined when it is not listed, or no longer connected: a socket that its process has given up belongs to user 0
 * in the table.
 */
export function peerUser(table: string, client: Endpoint, server: Endpoint): number | undefined {
  const row = new RegExp(`: ${toHex(client)} ${toHex(server)} 01 \\S+ \\S+ \\S+ +(\\d+) +\\d+ +(\\d+) `).exec(table);
  return row === null || row[2] === '0' ? undefined : Number(row[1]);
}

const chunkBytes = 64 * 1024;

/** The whole of an open /proc/net/tcp as it is now. The kernel writes it anew for each reading from its beginning. */
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
