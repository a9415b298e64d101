/** The greeting of the one version that is spoken, the same from both sides. */
export const version = 'RFB 003.008\n';

export const setEncodingsKind = 2;
/** Pseudo-encodings by which a server tells of its size. */
export const desktopSizeEncoding = -223;
export const extendedDesktopSizeEncoding = -308;

/** A viewer’s message that says which encodings it takes. */
export function setEncodings(encodings: readonly number[]): Buffer {
  const message = Buffer.alloc(4 + 4 * encodings.length);
  message.writeUInt8(setEncodingsKind, 0);
  message.writeUInt16BE(encodings.length, 2);
  for (const [at, encoding] of encodings.entries()) message.writeInt32BE(encoding, 4 + 4 * at);
  return message;
}
