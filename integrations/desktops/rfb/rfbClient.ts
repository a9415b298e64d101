import type { Duplex } from 'node:stream';
import { ByteReader, desktopSizeEncoding, extendedDesktopSizeEncoding, setEncodings, version } from './wire.ts';

export interface Size {
  width: number;
  height: number;
}

/** A picture of a screen with four bytes for each pixel: red, green, blue and an unused one. */
export interface Picture extends Size {
  pixels: Buffer;
}

/** The server breaks the protocol, or sends more than we accept. */
export class RfbViolation extends Error {
  override readonly name = 'RfbViolation';
}

const noAuthentication = 1;
const rawEncoding = 0;
const bytesPerPixel = 4;
/** A program on the computer can make the screen larger than Atrium ever does. */
const mostPixels = 4_096 * 4_096;
const longestName = 4_096;
const longestCutText = 16 * 1_048_576;
const mostScreens = 16;

interface Rectangle extends Size {
  x: number;
  y: number;
  encoding: number;
}

/**
 * A client of an X server’s RFB protocol (RFC 6143), for Atrium’s own pictures and input. A tenant’s program may answer
 * in the server’s place, so each number from the server has a limit.
 */
export class RfbClient {
  readonly #socket: Duplex;
  readonly #reader: ByteReader;
  #size: Size;
  /** The id of the server’s one screen. */
  #screenId = 0;

  private constructor(socket: Duplex, reader: ByteReader, size: Size) {
    this.#socket = socket;
    this.#reader = reader;
    this.#size = size;
  }

  /** Greets the server, and shares it with its other clients. */
  static async open(socket: Duplex): Promise<RfbClient> {
    socket.on('error', () => undefined);
    const reader = new ByteReader(socket);
    if ((await reader.read(12)).toString('latin1') !== version) throw new RfbViolation('It speaks another version.');
    socket.write(version);
    const types = await reader.read((await reader.read(1)).readUInt8());
    if (!types.includes(noAuthentication)) throw new RfbViolation('It asks for a password.');
    socket.write(Buffer.from([noAuthentication]));
    if ((await reader.read(4)).readUInt32BE() !== 0) throw new RfbViolation('It accepts no client.');
    socket.write(Buffer.from([1]));
    const init = await reader.read(24);
    const nameLength = init.readUInt32BE(20);
    if (nameLength > longestName) throw new RfbViolation('Its name is too long.');
    await reader.read(nameLength);
    return new RfbClient(socket, reader, requireSize({ width: init.readUInt16BE(0), height: init.readUInt16BE(2) }));
  }

  get size(): Size {
    return this.#size;
  }

  /** The whole screen as it is now. */
  async picture(): Promise<Picture> {
    this.#socket.write(pixelFormat);
    this.#socket.write(setEncodings([rawEncoding]));
    const { width, height } = this.#size;
    this.#requestUpdate({ x: 0, y: 0, width, height }, false);
    const pixels = Buffer.alloc(width * height * bytesPerPixel);
    for (let missing = width * height; missing > 0; ) {
      await this.#update(async (rectangle) => {
        await this.#readPixels(rectangle, pixels);
        missing -= rectangle.width * rectangle.height;
      });
    }
    return { width, height, pixels };
  }

  /** Changes the size of the screen. False when the server refuses. */
  async resize(size: Size): Promise<boolean> {
    this.#socket.write(pixelFormat);
    this.#socket.write(setEncodings([rawEncoding, desktopSizeEncoding, extendedDesktopSizeEncoding]));
    // Only a full update lists the server’s screens.
    this.#requestUpdate({ x: 0, y: 0, width: 1, height: 1 }, false);
    await this.#untilSized(({ encoding }) => encoding === extendedDesktopSizeEncoding);
    const order = Buffer.alloc(24);
    order.writeUInt8(251, 0);
    order.writeUInt16BE(size.width, 2);
    order.writeUInt16BE(size.height, 4);
    order.writeUInt8(1, 6);
    order.writeUInt32BE(this.#screenId, 8);
    order.writeUInt16BE(size.width, 16);
    order.writeUInt16BE(size.height, 18);
    this.#socket.write(order);
    this.#requestUpdate({ x: 0, y: 0, width: 1, height: 1 }, true);
    // `x` is 1 in the answer to this request, and `y` is 0 if the server has done it.
    const { y } = await this.#untilSized((said) => said.encoding === extendedDesktopSizeEncoding && said.x === 1);
    return y === 0;
  }

  key(keysym: number, isDown: boolean): void {
    const message = Buffer.alloc(8);
    message.writeUInt8(4, 0);
    message.writeUInt8(isDown ? 1 : 0, 1);
    message.writeUInt32BE(keysym, 4);
    this.#socket.write(message);
  }

  /** `buttons` has a bit for each button that is down. Wheel steps are buttons too. */
  pointer(x: number, y: number, buttons: number): void {
    const message = Buffer.alloc(6);
    message.writeUInt8(5, 0);
    message.writeUInt8(buttons, 1);
    message.writeUInt16BE(x, 2);
    message.writeUInt16BE(y, 4);
    this.#socket.write(message);
  }

  /** Settles when the server has handled all earlier messages: it answers a request for one pixel. */
  async settled(): Promise<void> {
    this.#socket.write(pixelFormat);
    this.#socket.write(setEncodings([rawEncoding]));
    this.#requestUpdate({ x: 0, y: 0, width: 1, height: 1 }, false);
    let isAnswered = false;
    while (!isAnswered) {
      await this.#update(async (rectangle) => {
        await this.#reader.read(requirePixels(rectangle) * bytesPerPixel);
        isAnswered = true;
      });
    }
  }

  #requestUpdate({ x, y, width, height }: Size & { x: number; y: number }, isIncremental: boolean): void {
    const message = Buffer.alloc(10);
    message.writeUInt8(3, 0);
    message.writeUInt8(isIncremental ? 1 : 0, 1);
    for (const [at, value] of [x, y, width, height].entries()) message.writeUInt16BE(value, 2 + 2 * at);
    this.#socket.write(message);
  }

  /** Reads updates until one reports a size that the caller wants. */
  async #untilSized(isWanted: (rectangle: Rectangle) => boolean): Promise<Rectangle> {
    let found: Rectangle | undefined;
    while (found === undefined) {
      await this.#update(async (rectangle) => {
        await this.#readSize(rectangle);
        if (isWanted(rectangle)) found = rectangle;
      });
    }
    return found;
  }

  async #readSize(rectangle: Rectangle): Promise<void> {
    const { encoding, width, height, x, y } = rectangle;
    if (encoding === rawEncoding) return void (await this.#reader.read(requirePixels(rectangle) * bytesPerPixel));
    if (encoding === extendedDesktopSizeEncoding) {
      const count = (await this.#reader.read(4)).readUInt8();
      if (count > mostScreens) throw new RfbViolation('It has too many screens.');
      const screens = await this.#reader.read(16 * count);
      if (count > 0) this.#screenId = screens.readUInt32BE();
      // A refused request changes nothing.
      if (x === 1 && y !== 0) return;
    } else if (encoding !== desktopSizeEncoding) throw new RfbViolation('We did not ask for its encoding.');
    this.#size = requireSize({ width, height });
  }

  async #readPixels(rectangle: Rectangle, into: Buffer): Promise<void> {
    const { x, y, width, height, encoding } = rectangle;
    if (encoding !== rawEncoding) throw new RfbViolation('We did not ask for its encoding.');
    const { width: all, height: rows } = this.#size;
    if (width === 0 || height === 0 || x + width > all || y + height > rows) {
      throw new RfbViolation('It draws outside its screen.');
    }
    // Row by row, so that the pixels are in memory once.
    for (let row = 0; row < height; row++) {
      const pixels = await this.#reader.read(width * bytesPerPixel);
      pixels.copy(into, ((y + row) * all + x) * bytesPerPixel);
    }
  }

  /** Reads up to the end of the next update, and calls `take` for each of its rectangles. */
  async #update(take: (rectangle: Rectangle) => Promise<void>): Promise<void> {
    for (;;) {
      const kind = (await this.#reader.read(1)).readUInt8();
      if (kind === 0) break;
      await this.#passOver(kind);
    }
    const count = (await this.#reader.read(3)).readUInt16BE(1);
    for (let n = 0; n < count; n++) {
      const head = await this.#reader.read(12);
      const [x, y, width, height] = [0, 2, 4, 6].map((at) => head.readUInt16BE(at)) as [number, number, number, number];
      await take({ x, y, width, height, encoding: head.readInt32BE(8) });
    }
  }

  async #passOver(kind: number): Promise<void> {
    if (kind === 1) return void (await this.#reader.read(6 * (await this.#reader.read(5)).readUInt16BE(3)));
    if (kind === 2) return;
    if (kind !== 3) throw new RfbViolation('It sends a message that we did not ask for.');
    const length = (await this.#reader.read(7)).readUInt32BE(3);
    if (length > longestCutText) throw new RfbViolation('Its text is too long.');
    await this.#reader.read(length);
  }
}

function requireSize(size: Size): Size {
  if (size.width === 0 || size.height === 0) throw new RfbViolation('It has no screen.');
  requirePixels(size);
  return size;
}

function requirePixels({ width, height }: Size): number {
  if (width * height > mostPixels) throw new RfbViolation('Its screen is too large.');
  return width * height;
}

/** 32 bits for each pixel, little-endian: the bytes are red, green, blue and an unused one. */
const pixelFormat = Buffer.from([0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0]);
