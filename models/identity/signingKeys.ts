import {
  type CryptoKey,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTHeaderParameters,
} from 'jose';
import { Op } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { Merged } from '../../base/merged.ts';
import { type Envelope, systemScope } from '../../crypto/envelope.ts';
import type { Database } from '../database/database.ts';
import { identityTables } from './tables.ts';

export const signingAlgorithm = 'EdDSA';
/** How long a session lives, and so how long a retired key must still verify. */
export const sessionLifetimeMs = 12 * 3_600_000;

/** The pattern of our ids. Any other `kid` is not looked up. */
const idPattern = /^sgk_[0-9A-Z]{26}$/;
const refreshAtMostEveryMs = 100;
const refreshAtLeastEveryMs = 60_000;

/**
 * The keys that sign session tokens. The private part is sealed in the database: all API processes sign with the same
 * key, and a dump of the database cannot sign. A token's `kid` is looked up here and nowhere else.
 */
export interface SigningKeys {
  /** The key to sign with. Makes the installation's first key when there is none. */
  current(): Promise<{ id: string; privateKey: CryptoKey }>;
  /** The public key with that id. Undefined if it is unknown or was retired longer ago than a session lives. */
  publicKey(id: string): Promise<CryptoKey | undefined>;
}

export function createSigningKeys(database: Database, envelope: Envelope): SigningKeys {
  const { signingKeys } = identityTables(database);
  let known = new Map<string, CryptoKey>();
  let newest: { id: string; privateKey: CryptoKey } | undefined;
  let refreshedAt = Number.NEGATIVE_INFINITY;
  const refreshes = new Merged<void>({ restMs: refreshAtMostEveryMs });

  async function refresh(): Promise<void> {
    const startedAt = performance.now();
    const rows = await signingKeys.findAll({
      where: { retiredAt: { [Op.or]: [null, { [Op.gt]: new Date(Date.now() - sessionLifetimeMs) }] } },
      order: [['id', 'ASC']],
    });
    const keys = new Map<string, CryptoKey>();
    for (const row of rows) keys.set(row.get().id, await importKey(row.get().publicJwk));
    known = keys;
    const last = rows.map((row) => row.get()).findLast((row) => row.retiredAt === null);
    if (last === undefined) newest = undefined;
    else if (last.id !== newest?.id) {
      const jwk = await envelope.open(systemScope, contextOf(last.id), last.privateJwkSealed);
      newest = { id: last.id, privateKey: await importKey(jwk.toString('utf8')) };
    }
    refreshedAt = startedAt;
  }

  /**
   * Waits for a refresh that begins after this call, and so sees every key that another process has signed with before.
   * Concurrent callers share it: made-up key ids, however many, cost ten queries a second.
   */
  const refreshAfterNow = () => refreshes.run('keys', refresh);

  const isStale = () => performance.now() - refreshedAt > refreshAtLeastEveryMs;

  async function add(): Promise<void> {
    const id = newId('signingKey');
    const pair = await generateKeyPair(signingAlgorithm, { crv: 'Ed25519', extractable: true });
    const privateJwk = Buffer.from(JSON.stringify(await exportJWK(pair.privateKey)));
    await signingKeys.create({
      id,
      algorithm: signingAlgorithm,
      publicJwk: JSON.stringify(await exportJWK(pair.publicKey)),
      privateJwkSealed: await envelope.seal(systemScope, contextOf(id), privateJwk),
      createdAt: new Date(),
      retiredAt: null,
    });
    await refreshAfterNow();
  }

  return {
    async current() {
      if (isStale()) await refreshAfterNow();
      if (newest === undefined) await add();
      if (newest === undefined) throw new Error('A signing key that was just made is not there.');
      return newest;
    },
    async publicKey(id) {
      if (isStale() || (!known.has(id) && idPattern.test(id))) await refreshAfterNow();
      return known.get(id);
    },
  };
}

/**
 * Finds the key that a token claims to be signed with. The header's `jwk`, `jku` and `x5c` are never used: keys come
 * only from our own table.
 */
export function keyOfToken(keys: Pick<SigningKeys, 'publicKey'>) {
  return async ({ kid }: JWTHeaderParameters): Promise<CryptoKey> => {
    const key = typeof kid === 'string' ? await keys.publicKey(kid) : undefined;
    if (key === undefined) throw new errors.JWKSNoMatchingKey();
    return key;
  };
}

/** The context that a sealed private key is bound to. */
function contextOf(id: string): string {
  return `signing_keys/${id}`;
}

async function importKey(json: string): Promise<CryptoKey> {
  const key = await importJWK(JSON.parse(json) as JWK, signingAlgorithm);
  if (key instanceof Uint8Array) throw new Error('A signing key is not symmetric.');
  return key;
}
