import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { DecryptionError } from './errors.ts';

/** AES-256-GCM as this project uses it: a random 96-bit nonce in front, the 128-bit tag at the end. */
const algorithm = 'aes-256-gcm';
export const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** Encrypts: `nonce ‖ ciphertext ‖ tag`. `associated` is authenticated and not stored. */
export function encrypt(key: Buffer, associated: Buffer, plaintext: Buffer): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(associated);
  return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** The reverse of {@link encrypt}. Throws {@link DecryptionError} when the key, `associated` or any byte differs. */
export function decrypt(key: Buffer, associated: Buffer, sealed: Buffer): Buffer {
  if (sealed.length < nonceBytes + tagBytes) throw new DecryptionError('The sealed value is too short.');
  const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes });
  decipher.setAAD(associated);
  decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(nonceBytes, sealed.length - tagBytes)), decipher.final()]);
  } catch {
    throw new DecryptionError(
      'The sealed value does not open: its key or place is a different one, or its bytes were changed.',
    );
  }
}

/**
 * Associated data from several strings. Each is preceded by its length, so that ("ab", "c") and ("a", "bc") give
 * different bytes.
 */
export function associatedData(...parts: readonly string[]): Buffer {
  return Buffer.concat(
    parts.flatMap((part) => {
      const bytes = Buffer.from(part, 'utf8');
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      return [length, bytes];
    }),
  );
}
