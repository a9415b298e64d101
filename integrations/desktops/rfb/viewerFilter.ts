import {
  desktopSizeEncoding,
  extendedDesktopSizeEncoding,
  setEncodings,
  setEncodingsKind,
  version as versionText,
} from './wire.ts';

/** A viewer sends something that is not RFB, or that our own page never sends. */
export class ViewerViolation extends Error {
  override readonly name = 'ViewerViolation';
}

const version = Buffer.from(versionText);
const longestCutText = 262_144 + 4_096;
const mostEncodings = 256;
const maxScreens = 16;
const extendedClipboard = 0xc0a1e5ce | 0;

/**
 * Encodings that viewers may ask for. Other encodings change the format of later messages, and the filter would mistake
 * one message for another.
 */
const allowedEncodings = new Set([
  0, // raw
  1, // CopyRect
  2, // RRE
  5, // Hextile
  7, // Tight
  16, // ZRLE
  21, // JPEG
  desktopSizeEncoding,
  -224, // LastRect
  -239, // Cursor
  -307, // DesktopName
  extendedDesktopSizeEncoding,
  -312, // Fence
  -313, // ContinuousUpdates
  -258, // QEMU’s key events
  extendedClipboard,
]);
const isQuality = (encoding: number) =>
  (encoding >= -32 && encoding <= -23) || (encoding >= -256 && encoding <= -247) || encoding === -260;

/**
 * The length of a message, and who may send it: any viewer, or only one in control. Messages without `pass` are
 * dropped. Undefined when more bytes are needed to know.
 */
type Rule = (bytes: Buffer) => { length: number; pass?: 'always' | 'control' } | undefined;

const rules: Readonly<Record<number, Rule>> = {
  0: () => ({ length: 20, pass: 'always' }), // the pixel format
  [setEncodingsKind]: (bytes) => {
    if (bytes.length < 4) return undefined;
    const count = bytes.readUInt16BE(2);
    if (count > mostEncodings) throw new ViewerViolation('It asks for too many encodings.');
    return { length: 4 + 4 * count, pass: 'always' };
  },
  3: () => ({ length: 10, pass: 'always' }), // a request for an update
  4: () => ({ length: 8, pass: 'control' }), // a key
  5: () => ({ length: 6, pass: 'control' }), // the pointer
  6: (bytes) => {
    if (bytes.length < 8) return undefined;
    const length = Math.abs(bytes.readInt32BE(4));
    if (length > longestCutText) throw new ViewerViolation('Its text is too long.');
    return { length: 8 + length, pass: 'control' };
  },
  150: () => ({ length: 10, pass: 'always' }), // continuous updates
  248: (bytes) => (bytes.length < 9 ? undefined : { length: 9 + bytes.readUInt8(8), pass: 'always' }), // fence
  // A new size for the screen. Only the API changes the size of a session.
  251: (bytes) => {
    if (bytes.length < 8) return undefined;
    if (bytes.readUInt8(6) > maxScreens) throw new ViewerViolation('It has too many screens.');
    return { length: 8 + 16 * bytes.readUInt8(6) };
  },
  255: (bytes) => {
    if (bytes.length < 2) return undefined;
    if (bytes.readUInt8(1) !== 0) throw new ViewerViolation('It asks for an extension that is not offered.');
    return { length: 12, pass: 'control' };
  },
};

/**
 * Tells the server to announce texts of the clipboard to this viewer without sending them. The message that asks for a
 * text passes only from a viewer in control.
 */
const noClipboard = Buffer.from([6, 0, 0, 0, 0xff, 0xff, 0xff, 0xf8, 0x09, 0, 0, 1, 0, 0, 0, 0]);

interface Options {
  /** Whether this viewer gets texts that are copied on the desktop. */
  hasClipboard?: boolean;
}

/**
 * Filters what a viewer sends: a viewer that is not in control sends no key, pointer or text. The filter reads all
 * messages from the first byte, and lets only messages pass that it knows.
 */
export class ViewerFilter {
  readonly #mayControl: () => boolean;
  readonly #hasClipboard: boolean;
  #pending: Buffer = Buffer.alloc(0);
  #step: 'version' | 'security' | 'init' | 'messages' = 'version';

  constructor(mayControl: () => boolean, { hasClipboard = true }: Options = {}) {
    this.#mayControl = mayControl;
    this.#hasClipboard = hasClipboard;
  }

  /** The bytes that go on to the server. Throws {@link ViewerViolation}. */
  push(bytes: Buffer): Buffer {
    this.#pending = Buffer.concat([this.#pending, bytes]);
    const passed: Buffer[] = [];
    for (let next = this.#next(); next !== undefined; next = this.#next()) passed.push(next);
    return Buffer.concat(passed);
  }

  /** The next complete message, empty if it is dropped; undefined when no message is complete yet. */
  #next(): Buffer | undefined {
    if (this.#step !== 'messages') return this.#greet();
    if (this.#pending.length === 0) return undefined;
    const kind = this.#pending.readUInt8();
    const rule = Object.hasOwn(rules, kind) ? rules[kind] : undefined;
    if (rule === undefined) throw new ViewerViolation('It sends an unknown message.');
    const known = rule(this.#pending);
    if (known === undefined || this.#pending.length < known.length) return undefined;
    const message = this.#take(known.length);
    if (known.pass !== 'always' && !(known.pass === 'control' && this.#mayControl())) return Buffer.alloc(0);
    if (kind !== setEncodingsKind) return message;
    return this.#hasClipboard ? setEncodings(allowedOf(message)) : withoutClipboard(allowedOf(message));
  }

  #greet(): Buffer | undefined {
    if (this.#step === 'version') {
      if (this.#pending.length < version.length) return undefined;
      const said = this.#take(version.length);
      if (!said.equals(version)) throw new ViewerViolation('It speaks another version.');
      this.#step = 'security';
      return said;
    }
    if (this.#pending.length === 0) return undefined;
    const [said = 0] = this.#take(1);
    if (this.#step === 'security') {
      if (said !== 1) throw new ViewerViolation('It asks for a security type that is not offered.');
      this.#step = 'init';
      return Buffer.from([1]);
    }
    this.#step = 'messages';
    // A viewer always shares the desktop with the others.
    const init = Buffer.from([1]);
    return this.#hasClipboard ? init : Buffer.concat([init, withoutClipboard([])]);
  }

  #take(length: number): Buffer {
    const taken = this.#pending.subarray(0, length);
    this.#pending = this.#pending.subarray(length);
    return taken;
  }
}

/** The server obeys `noClipboard` only from viewers that accept the extended clipboard. */
function withoutClipboard(encodings: readonly number[]): Buffer {
  const others = encodings.filter((encoding) => encoding !== extendedClipboard);
  return Buffer.concat([setEncodings([...others, extendedClipboard]), noClipboard]);
}

function allowedOf(message: Buffer): number[] {
  const asked = Array.from({ length: (message.length - 4) / 4 }, (_, at) => message.readInt32BE(4 + 4 * at));
  return asked.filter((encoding) => allowedEncodings.has(encoding) || isQuality(encoding));
}
