import { inflateSync } from 'node:zlib';

/** A picture as tests look at it. */
export interface Png {
  width: number;
  height: number;
  /** Red, green and blue of a pixel. */
  at(x: number, y: number): [number, number, number];
}

/** Reads a PNG with 8 bits per channel, without transparency and filters, as Atrium makes. Throws for any other. */
export function readPng(file: Buffer): Png {
  if (file.toString('latin1', 1, 4) !== 'PNG') throw new Error('This is no PNG.');
  const data: Buffer[] = [];
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at);
    if (file.toString('latin1', at + 4, at + 8) === 'IDAT') data.push(file.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  const [width, height] = [file.readUInt32BE(16), file.readUInt32BE(20)];
  if (file.readUInt8(24) !== 8 || file.readUInt8(25) !== 2) throw new Error('This PNG is of another kind.');
  const rows = inflateSync(Buffer.concat(data));
  const rowLength = width * 3 + 1;
  if (rows.length !== rowLength * height) throw new Error('This PNG is not complete.');
  return {
    width,
    height,
    at(x, y) {
      if (rows[y * rowLength] !== 0) throw new Error('This PNG has a filter.');
      const from = y * rowLength + 1 + x * 3;
      return [rows[from] as number, rows[from + 1] as number, rows[from + 2] as number];
    },
  };
}
