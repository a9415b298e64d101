import {
  desktopSizeEncoding,
  extendedDesktopSizeEncoding,
  setEncodings,
  setEncodingsKind,
  version as versionText,
} from './messages.ts';

/** What a viewer sends that is not RFB, or that no viewer of ours sends. */
export class ViewerViolation extends Error {
  override readonly name = 'ViewerViolation';
}

const version = Buffer.from(versionText);
const longestCutText = 262_144 + 4_096;
const mostEncodings = 256;
const maxScreens = 16;
const extendedClipboard = 0xc0a1e5ce | 0;

/**
 * Encodings that viewers may ask for. Others would change what their messages look like: no message may be taken for
 * another one here.
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

/** A message as far as it is known, and what becomes of it. */
type Rule = (bytes: Buffer) => { length: number; pass?: 'always' | 'control' } | undefined;

/** Undefined says that more bytes are needed to know. */
const rules: Readonly<Record<number, Rule>> = {
  0: () => ({ length: 20, pass: 'always' }), // the format of pixels
  [setEncodingsKind]: (bytes) => {
    if (bytes.length < 4) return undefined;
    const count = bytes.readUInt16BE(2);
    if (count > mostEncodings) throw new ViewerViolation('It asks for too many encodings.');
    return { length: 4 + 4 * count, pass: 'always' };
  },
  3: () => ({ length: 10, pass: 'always' }), // asks for an update
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
  // The size is the session’s, and is changed there.
  251: (bytes) => {
    if (bytes.length < 8) return undefined;
    if (bytes.readUInt8(6) > maxScreens) throw new ViewerViolation('It has too many screens.');
    return { length: 8 + 16 * bytes.readUInt8(6) };
  },
  255: (bytes) => {
    if (bytes.length < 2) return undefined;
    if (bytes.readUInt8(1) !== 0) throw new ViewerViolation('It wants what is not offered.');
    return { length: 12, pass: 'control' };
  },
};

/**
 * Has the server tell this viewer only that there is a text in the clipboard, and never send it unasked. To ask for it is
 * a message that passes in control only.
 */
const noClipboard = Buffer.from([6, 0, 0, 0, 0xff, 0xff, 0xff, 0xf8, 0x09, 0, 0, 1, 0, 0, 0, 0]);

interface Options {
  /** Whether what is copied on the desktop goes to this viewer. */
  hasClipboard?: boolean;
}

/**
 * What a viewer sends, without what it may not: whoever only looks sends no key, no pointer and no text. It follows the
 * messages from the first byte, so nothing passes that it does not know.
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

  /** What of it goes on to the server. Throws {@link ViewerViolation}. */
  push(bytes: Buffer): Buffer {
    this.#pending = Buffer.concat([this.#pending, bytes]);
    const passed: Buffer[] = [];
    for (let next = this.#next(); next !== undefined; next = this.#next()) passed.push(next);
    return Buffer.concat(passed);
  }

  /** The next whole message as it goes on, empty where it does not; undefined where none is complete. */
  #next(): Buffer | undefined {
    if (this.#step !== 'messages') return this.#greet();
    if (this.#pending.length === 0) return undefined;
    const kind = this.#pending.readUInt8();
    const rule = Object.hasOwn(rules, kind) ? rules[kind] : undefined;
    if (rule === undefined) throw new ViewerViolation('It sends what is not known.');
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
      if (said !== 1) throw new ViewerViolation('It wants a kind of security that is not there.');
      this.#step = 'init';
      return Buffer.from([1]);
    }
    this.#step = 'messages';
    // Nobody shuts others out.
    const init = Buffer.from([1]);
    return this.#hasClipboard ? init : Buffer.concat([init, withoutClipboard([])]);
  }

  #take(length: number): Buffer {
    const taken = this.#pending.subarray(0, length);
    this.#pending = this.#pending.subarray(length);
    return taken;
  }
}

/** The server heeds what is said of the clipboard by viewers that take the extended one only. */
function withoutClipboard(encodings: readonly number[]): Buffer {
  const others = encodings.filter((encoding) => encoding !== extendedClipboard);
  return Buffer.concat([setEncodings([...others, extendedClipboard]), noClipboard]);
}

function allowedOf(message: Buffer): number[] {
  const asked = Array.from({ length: (message.length - 4) / 4 }, (_, at) => message.readInt32BE(4 + 4 * at));
  return asked.filter((encoding) => allowedEncodings.has(encoding) || isQuality(encoding));
}
