import { createHash } from 'node:crypto';
import { associatedData, decrypt, encrypt, keyBytes } from './aead.ts';
import { DecryptionError } from './errors.ts';
import type { MasterKey } from './masterKey.ts';

/** The first byte of every wrapped key, so that a later format can be told apart. */
const formatVersion = 1;
const purpose = 'atrium/wrapped-data-key/v1';

/** A master key whose 32 bytes this process holds: from `ATRIUM_MASTER_KEY` or from the file in the data directory. */
export function localMasterKey(bytes: Buffer): MasterKey {
  if (bytes.length !== keyBytes) throw new Error(`A master key has ${keyBytes} bytes.`);
  const key = Buffer.from(bytes);
  // A hash of 256 random bits reveals nothing about them, and tells which key a row was wrapped under.
  const fingerprint = createHash('sha256').update('atrium/master-key-id\0').update(key).digest('hex').slice(0, 16);
  return {
    id: `local:${fingerprint}`,
    async wrap(dataKey, context) {
      return Buffer.concat([Buffer.of(formatVersion), encrypt(key, associatedData(purpose, context), dataKey)]);
    },
    async unwrap(wrapped, context) {
      if (wrapped[0] !== formatVersion) throw new DecryptionError('The wrapped key has an unknown format.');
      return decrypt(key, associatedData(purpose, context), wrapped.subarray(1));
    },
  };
}
