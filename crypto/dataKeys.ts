import { randomBytes } from 'node:crypto';
import { keepBounded } from '../base/freshCache.ts';
import { keyBytes } from './aead.ts';
import { DecryptionError } from './errors.ts';
import type { MasterKeyRing } from './masterKey.ts';

/** A data key as it is stored: always wrapped. */
export interface WrappedDataKey {
  scope: string;
  /** Starts at 1. The highest version seals. */
  version: number;
  masterKeyId: string;
  wrappedKey: Buffer;
}

/** Where wrapped data keys are kept (`models/identity/dataKeys.ts`). */
export interface DataKeyStore {
  /** The scope's newest key. */
  latest(scope: string): Promise<WrappedDataKey | undefined>;
  byVersion(scope: string, version: number): Promise<WrappedDataKey | undefined>;
  /** False when another process has stored this version first. */
  insert(key: WrappedDataKey): Promise<boolean>;
}

export interface DataKey {
  version: number;
  key: Buffer;
}

/** A rotation by another process is noticed within this time. */
const currentMaxAgeMs = 30_000;
const cachedKeys = 2_000;

/**
 * Unwraps data keys, makes missing ones and caches some in memory, so that a key management service is not asked for
 * each row.
 */
export function createDataKeys(masterKeys: MasterKeyRing, store: DataKeyStore) {
  const unwrapped = new Map<string, Promise<Buffer>>();
  const newest = new Map<string, { version: number; readAt: number }>();

  function unwrap(row: WrappedDataKey): Promise<Buffer> {
    const id = contextOf(row.scope, row.version);
    const pending = unwrapDataKey(masterKeys, row);
    keepBounded(unwrapped, cachedKeys, id, pending);
    pending.catch(() => unwrapped.delete(id));
    return pending;
  }

  async function add(scope: string, version: number): Promise<void> {
    const masterKey = await masterKeys.current();
    const wrappedKey = await masterKey.wrap(randomBytes(keyBytes), contextOf(scope, version));
    // False means that another process was faster. Its key is as good, and the caller reads it back.
    await store.insert({ scope, version, masterKeyId: masterKey.id, wrappedKey });
  }

  async function latest(scope: string): Promise<WrappedDataKey> {
    const row = await store.latest(scope);
    if (row !== undefined) return row;
    await add(scope, 1);
    const made = await store.latest(scope);
    if (made === undefined) throw new Error('A data key that was just stored is not there.');
    return made;
  }

  async function byVersion(scope: string, version: number): Promise<Buffer> {
    const cached = unwrapped.get(contextOf(scope, version));
    if (cached !== undefined) return cached;
    const row = await store.byVersion(scope, version);
    if (row === undefined) throw new DecryptionError('The sealed value names a data key that does not exist.');
    return unwrap(row);
  }

  return {
    /** The key that seals for this scope now. Made when there is none. */
    async current(scope: string): Promise<DataKey> {
      const known = newest.get(scope);
      if (known !== undefined && Date.now() - known.readAt < currentMaxAgeMs) {
        return { version: known.version, key: await byVersion(scope, known.version) };
      }
      const row = await latest(scope);
      const key = await (unwrapped.get(contextOf(scope, row.version)) ?? unwrap(row));
      keepBounded(newest, cachedKeys, scope, { version: row.version, readAt: Date.now() });
      return { version: row.version, key };
    },
    byVersion,
  };
}

/** Unwraps a data key with the master key that it is wrapped under. */
export async function unwrapDataKey(masterKeys: MasterKeyRing, row: WrappedDataKey): Promise<Buffer> {
  const masterKey = await masterKeys.byId(row.masterKeyId);
  if (masterKey !== undefined) return masterKey.unwrap(row.wrappedKey, contextOf(row.scope, row.version));
  throw new DecryptionError(
    `The data in this database is encrypted under another master key (${row.masterKeyId}). ` +
      'Restore master.key in the data directory, or set ATRIUM_MASTER_KEY to that key.',
  );
}

/** The context that a wrapped data key is bound to: a row moved to another scope does not unwrap. */
export function contextOf(scope: string, version: number): string {
  return `${scope}/${version}`;
}
