import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { setImmediate as nextTurnOfEventLoop } from 'node:timers/promises';
import { crc32, createDeflate } from 'node:zlib';
import type { Picture, Size } from './rfb/rfbClient.ts';

/** Providers scale larger pictures down, and then a model’s coordinates mean the provider’s picture instead of ours. */
const longestSide = 1_568;
const mostPixels = 1_150_000;
/** Work goes on in steps of this many rows, so that a large screen does not block the process. */
const rowsAtOnce = 64;

/** The size of the picture that models get of a display: the display’s own, or smaller in proportion. */
export function shownSize({ width, height }: Size): Size {
  const factor = Math.min(1, longestSide / Math.max(width, height), Math.sqrt(mostPixels / (width * height)));
  return { width: Math.max(1, Math.floor(width * factor)), height: Math.max(1, Math.floor(height * factor)) };
}

/** Maps a point of a model’s picture to the display. */
export function onDisplay({ x, y }: { x: number; y: number }, display: Size): { x: number; y: number } {
  const shown = shownSize(display);
  return {
    x: Math.floor(((x + 0.5) * display.width) / shown.width),
    y: Math.floor(((y + 0.5) * display.height) / shown.height),
  };
}

/** Scales a picture down. Each pixel is the mean of the pixels that it replaces. */
export async function scaledDown(picture: Picture, { width, height }: Size): Promise<Picture> {
  if (width >= picture.width && height >= picture.height) return picture;
  const pixels = Buffer.alloc(width * height * 4);
  const columns = spans(picture.width, width);
  const rows = spans(picture.height, height);
  for (const [y, rowSpan] of rows.entries()) {
    if (y % rowsAtOnce === 0) await nextTurnOfEventLoop();
    for (const [x, columnSpan] of columns.entries()) {
      const to = (y * width + x) * 4;
      const count = (rowSpan.end - rowSpan.start) * (columnSpan.end - columnSpan.start);
      let [red, green, blue] = [0, 0, 0];
      for (let row = rowSpan.start; row < rowSpan.end; row++) {
        let from = (row * picture.width + columnSpan.start) * 4;
        for (let column = columnSpan.start; column < columnSpan.end; column++, from += 4) {
          red += picture.pixels[from] as number;
          green += picture.pixels[from + 1] as number;
          blue += picture.pixels[from + 2] as number;
        }
      }
      pixels[to] = Math.round(red / count);
      pixels[to + 1] = Math.round(green / count);
      pixels[to + 2] = Math.round(blue / count);
    }
  }
  return { width, height, pixels };
}

/** For each pixel of the smaller side, the range of pixels of the larger side that it replaces. */
function spans(from: number, to: number): { start: number; end: number }[] {
  return Array.from({ length: to }, (_, index) => ({
    start: Math.floor((index * from) / to),
    end: Math.max(Math.ceil(((index + 1) * from) / to), Math.floor((index * from) / to) + 1),
  }));
}

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
/** A fast level: screens are mostly flat, and a caller waits for the picture. */
const level = 3;

/** Encodes a picture as PNG with 8 bits for each channel and no transparency. */
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
  header.set([8, 2, 0, 0, 0], 8); // 8 bits, true color
  const chunks = [chunkOf('IHDR', header), chunkOf('IDAT', await compressed), chunkOf('IEND', Buffer.alloc(0))];
  return Buffer.concat([signature, ...chunks.flat()]);
}

/** Rows without a filter, with three bytes for each pixel. */
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

/** The parts of a PNG chunk. The caller joins all parts, so that the large ones are copied once. */
function chunkOf(type: string, data: Buffer): Buffer[] {
  const name = Buffer.from(type, 'latin1');
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(data, crc32(name)));
  return [length, name, data, sum];
}
