export interface ImageSize {
  width: number;
  height: number;
}

/**
 * The size of a PNG, JPEG, GIF or WebP in pixels, as its headers claim. Undefined if there is no such header. Nothing
 * is decoded, and no segment is visited twice.
 */
export function imageSize(bytes: Buffer): ImageSize | undefined {
  try {
    if (bytes.readUInt32BE(0) === 0x89504e47) return sized(bytes.readUInt32BE(16), bytes.readUInt32BE(20));
    if (bytes.toString('latin1', 0, 4) === 'GIF8') return sized(bytes.readUInt16LE(6), bytes.readUInt16LE(8));
    if (bytes.readUInt16BE(0) === 0xffd8) return jpegSize(bytes);
    if (bytes.toString('latin1', 8, 12) === 'WEBP') return webpSize(bytes);
  } catch (error) {
    // The bytes end before the header does.
    const { code } = error as { code?: string };
    if (code !== 'ERR_OUT_OF_RANGE' && code !== 'ERR_BUFFER_OUT_OF_BOUNDS') throw error;
  }
  return undefined;
}

/** The first frame header (ITU-T T.81, B.2.2), after any other segments. */
function jpegSize(bytes: Buffer): ImageSize | undefined {
  for (let at = 2; ; ) {
    if (bytes.readUInt8(at) !== 0xff) return undefined;
    const marker = bytes.readUInt8(at + 1);
    if (marker === 0xff) at += 1;
    else if (isFrame(marker)) return sized(bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5));
    else at += 2 + (hasLength(marker) ? bytes.readUInt16BE(at + 2) : 0);
  }
}

/** SOF0 to SOF15, without DHT, JPG and DAC. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
}

function hasLength(marker: number): boolean {
  return marker !== 0x01 && !(marker >= 0xd0 && marker <= 0xd8);
}

/** The canvas of an extended file, else the size of the single frame, lossy or lossless (RFC 9649). */
function webpSize(bytes: Buffer): ImageSize | undefined {
  const chunk = bytes.toString('latin1', 12, 16);
  if (chunk === 'VP8X') return sized(bytes.readUIntLE(24, 3) + 1, bytes.readUIntLE(27, 3) + 1);
  if (chunk === 'VP8 ') return sized(bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff);
  if (chunk !== 'VP8L') return undefined;
  const bits = bytes.readUInt32LE(21);
  return sized((bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1);
}

function sized(width: number, height: number): ImageSize | undefined {
  return width > 0 && height > 0 ? { width, height } : undefined;
}
