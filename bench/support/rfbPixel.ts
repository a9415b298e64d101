import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { ByteReader } from '../../integrations/desktops/rfb/wire.ts';

const versionBytes = 12;

/** A connection to an X server's RFB that watches one pixel. */
export interface PixelWatch {
  /** Presses and releases a key. Settles when the pixel has changed. */
  press(keysym: number): Promise<void>;
  close(): void;
}

/** Connects directly to the socket. */
export async function watchPixel(path: string, x: number, y: number): Promise<PixelWatch> {
  const socket: Socket = connect(path);
  await once(socket, 'connect');
  const reader = new ByteReader(socket);
  socket.write(await reader.read(versionBytes));
  await reader.read((await reader.read(1)).readUInt8());
  socket.write(Buffer.from([1]));
  await reader.read(4);
  socket.write(Buffer.from([1]));
  const init = await reader.read(24);
  await reader.read(init.readUInt32BE(20));
  // Asks for raw pixels.
  socket.write(Buffer.from([2, 0, 0, 1, 0, 0, 0, 0]));
  const bytesPerPixel = init.readUInt8(4) / 8;
  await update(false);
  return {
    async press(keysym) {
      const changed = update(true);
      for (const isDown of [1, 0]) {
        const message = Buffer.from([4, isDown, 0, 0, 0, 0, 0, 0]);
        message.writeUInt32BE(keysym, 4);
        socket.write(message);
      }
      await changed;
    },
    close: () => void socket.destroy(),
  };

  async function update(isIncremental: boolean): Promise<void> {
    const request = Buffer.from([3, isIncremental ? 1 : 0, 0, 0, 0, 0, 0, 1, 0, 1]);
    request.writeUInt16BE(x, 2);
    request.writeUInt16BE(y, 4);
    socket.write(request);
    const head = await reader.read(4);
    if (head.readUInt8() !== 0) throw new Error(`The X server has sent ${head.readUInt8()}.`);
    for (let left = head.readUInt16BE(2); left > 0; left--) {
      const rectangle = await reader.read(12);
      await reader.read(rectangle.readUInt16BE(4) * rectangle.readUInt16BE(6) * bytesPerPixel);
    }
  }
}
