import type { Socket } from 'node:net';
import type { Connection } from 'mysql2';
import { RowTooLarge } from './errors.ts';

/**
 * The maximum size of a row as the server sends it. The client buffers a whole row before it yields any of it, and a
 * row can be as large as all of its values together.
 */
export const largestRowBytes = 32 * 1_048_576;

interface Bound {
  maxBytes: number;
  onTooLarge(error: RowTooLarge): void;
}

/** Ends a connection that receives a larger row. The caller reports each row and the end. */
export function boundRows(connection: Connection, { maxBytes, onTooLarge }: Bound): { onRow(): void; end(): void } {
  let bytes = 0;
  // The types lack this property.
  const { stream: socket } = connection as unknown as { stream: Socket };
  const count = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= maxBytes) return;
    connection.destroy();
    onTooLarge(new RowTooLarge(maxBytes));
  };
  socket.on('data', count);
  return {
    onRow() {
      bytes = 0;
    },
    end() {
      socket.off('data', count);
    },
  };
}
