import { createECDH } from 'node:crypto';
import { type Envelope, systemScope } from '../../crypto/envelope.ts';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';

/** The key pair that identifies this installation to push services (VAPID, RFC 8292): P-256, base64url. */
export interface PushKeys {
  /** Uncompressed, 65 bytes. Browsers call it the application server key. */
  publicKey: string;
  privateKey: string;
}

/** There is only one pair, since a new one would invalidate every subscription. */
const rowId = 'vapid';
const sealContext = `push_keys/${rowId}`;
const privateKeyBytes = 32;

/** Reads the installation's key pair. The first call makes it. */
export function createPushKeys(database: Database, envelope: Envelope): () => Promise<PushKeys> {
  let known: Promise<PushKeys> | undefined;

  async function read(): Promise<PushKeys | undefined> {
    const sql = 'SELECT public_key, private_key_sealed AS sealed FROM push_keys WHERE id = ?';
    const [row] = await select<{ publicKey: string; sealed: Buffer }>(database.pool, sql, [rowId]);
    if (row === undefined) return undefined;
    const privateKey = await envelope.open(systemScope, sealContext, row.sealed);
    return { publicKey: row.publicKey, privateKey: privateKey.toString('base64url') };
  }

  async function readOrMake(): Promise<PushKeys> {
    const found = await read();
    if (found !== undefined) return found;
    const pair = createECDH('prime256v1');
    const publicKey = pair.generateKeys().toString('base64url');
    // `getPrivateKey` omits leading zeros.
    const privateKey = Buffer.alloc(privateKeyBytes);
    pair.getPrivateKey().copy(privateKey, privateKeyBytes - pair.getPrivateKey().length);
    const sealed = await envelope.seal(systemScope, sealContext, privateKey);
    // Another process may have been faster. Its pair is used then.
    await execute(
      database.pool,
      `INSERT INTO push_keys (id, public_key, private_key_sealed, created_at) VALUES (?, ?, ?, UTC_TIMESTAMP(3))
        ON DUPLICATE KEY UPDATE id = id`,
      [rowId, publicKey, sealed],
    );
    const made = await read();
    if (made === undefined) throw new Error('The push keys that were just stored are not there.');
    return made;
  }

  return () => {
    known ??= readOrMake();
    known.catch(() => {
      known = undefined;
    });
    return known;
  };
}
