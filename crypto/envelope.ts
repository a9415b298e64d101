import { associatedData, decrypt, encrypt } from './aead.ts';
import { createDataKeys, type DataKeyStore } from './dataKeys.ts';
import { DecryptionError } from './errors.ts';
import type { MasterKeyRing } from './masterKey.ts';

/** The scope of data that belongs to the installation and not to a space. */
export const systemScope = 'system';

/**
 * Envelope encryption: each scope (a space's id, or {@link systemScope}) has data keys of its own, wrapped by the
 * master key. `context` names the row, such as `signing_keys/sgk_01…`. Scope and context are authenticated, so sealed
 * bytes copied to another row or space do not open.
 */
export interface Envelope {
  seal(scope: string, context: string, plaintext: Buffer): Promise<Buffer>;
  /** Throws {@link DecryptionError}. */
  open(scope: string, context: string, sealed: Buffer): Promise<Buffer>;
}

// The format: version (1 byte) ‖ data key's version (4 bytes) ‖ nonce ‖ ciphertext ‖ tag. The header is authenticated
// too.
const formatVersion = 1;
const headerBytes = 5;
const purpose = 'atrium/sealed/v1';

/** An {@link Envelope} over the given master keys and the table of wrapped data keys. */
export function createEnvelope(masterKeys: MasterKeyRing, store: DataKeyStore): Envelope {
  const dataKeys = createDataKeys(masterKeys, store);
  return {
    async seal(scope, context, plaintext) {
      const { version, key } = await dataKeys.current(scope);
      const header = Buffer.alloc(headerBytes);
      header.writeUInt8(formatVersion, 0);
      header.writeUInt32BE(version, 1);
      return Buffer.concat([header, encrypt(key, associated(header, scope, context), plaintext)]);
    },
    async open(scope, context, sealed) {
      if (sealed.length < headerBytes || sealed[0] !== formatVersion) {
        throw new DecryptionError('The sealed value has an unknown format.');
      }
      const header = sealed.subarray(0, headerBytes);
      const key = await dataKeys.byVersion(scope, header.readUInt32BE(1));
      return decrypt(key, associated(header, scope, context), sealed.subarray(headerBytes));
    },
  };
}

function associated(header: Buffer, scope: string, context: string): Buffer {
  return associatedData(purpose, header.toString('hex'), scope, context);
}
