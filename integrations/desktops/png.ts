import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { crc32, createDeflate } from 'node:zlib';
import type { Picture } from './rfb/rfbClient.ts';

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
/** Packed at once: a large screen must not hold up everybody else. */
const rowsAtOnce = 64;
/** Screens are mostly flat, and are compressed while somebody waits. */
const level = 3;

/** A picture as PNG, 8 bits a channel, without transparency. */
export async function encodePng({ width, height, pixels }: Picture): Promise<Buffer> {
  const deflate = createDeflate({ level });
  const compressed = buffer(deflate);
  for (let row = 0; row < height; row += rowsAtOnce) {
    const rows = packRows(pixels, width, row, Math.min(rowsAtOnce, height - row));
    if (!deflate.write(rows)) await once(deflate, 'drain');
  }
  deflate.end();
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8); // 8 bits, true colour
  const chunks = [chunkOf('IHDR', header), chunkOf('IDAT', await compressed), chunkOf('IEND', Buffer.alloc(0))];
  return Buffer.concat([signature, ...chunks.flat()]);
}

/** Each row without a filter, and three bytes a pixel. */
function packRows(pixels: Buffer, width: number, first: number, count: number): Buffer {
  const packed = Buffer.allocUnsafe(count * (1 + width * 3));
  let to = 0;
  let from = first * width * 4;
  for (let row = 0; row < count; row++) {
    packed[to++] = 0;
    for (let x = 0; x < width; x++, from += 4) {
      packed[to++] = pixels[from] as number;
      packed[to++] = pixels[from + 1] as number;
      packed[to++] = pixels[from + 2] as number;
    }
  }
  return packed;
}

/** In pieces, so that what is large is copied once. */
function chunkOf(type: string, data: Buffer): Buffer[] {
  const name = Buffer.from(type, 'latin1');
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(data, crc32(name)));
  return [length, name, data, sum];
}
