import type { Socket } from 'node:net';
import type { Connection } from 'mysql2';
import { RowTooLarge } from './errors.ts';

/**
 * What one row may take, as the server sends it. The client has all of a row in memory before it gives any of it, and a
 * row can be as large as all of its values together.
 */
export const largestRowBytes = 32 * 1_048_576;

interface Bound {
  maxBytes: number;
  onTooLarge(error: RowTooLarge): void;
}

/** Ends a connection that is being sent a larger row than this. Each row is to be told of, as it comes. */
export function boundRows(connection: Connection, { maxBytes, onTooLarge }: Bound): { onRow(): void } {
  let bytes = 0;
  // Its types do not have it.
  (connection as unknown as { stream: Socket }).stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= maxBytes) return;
    connection.destroy();
    onTooLarge(new RowTooLarge(maxBytes));
  });
  return {
    onRow() {
      bytes = 0;
    },
  };
}
