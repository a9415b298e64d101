import { randomBytes } from 'node:crypto';
import { keyBytes } from './aead.ts';
import { contextOf, type DataKeyStore, unwrapDataKey, type WrappedDataKey } from './dataKeys.ts';
import type { MasterKey, MasterKeyRing } from './masterKey.ts';

/** What a rotation needs from the table beyond a {@link DataKeyStore}. */
export interface RotationStore extends DataKeyStore {
  /** Every scope that has a data key. */
  scopes(): Promise<string[]>;
  /** Up to `limit` keys that are wrapped under another master key. */
  wrappedByOthers(masterKeyId: string, limit: number): Promise<WrappedDataKey[]>;
  /** Replaces the wrapping, unless it has been replaced since it was read. */
  rewrap(before: WrappedDataKey, after: Pick<WrappedDataKey, 'masterKeyId' | 'wrappedKey'>): Promise<void>;
}

export interface RotationReport {
  masterKeyId: string;
  /** Scopes that have a new data key. */
  rotated: number;
  /** Data keys that were wrapped anew. */
  rewrapped: number;
}

const rowsAtOnce = 100;

/**
 * Gives each scope a new data key, wrapped under `target`. Other processes notice within half a minute. Sealed data
 * does not change.
 */
export async function rotateDataKeys(
  store: Omit<RotationStore, 'wrappedByOthers' | 'rewrap'>,
  target: MasterKey,
): Promise<number> {
  const scopes = await store.scopes();
  for (const scope of scopes) {
    const newest = await store.latest(scope);
    const version = (newest?.version ?? 0) + 1;
    const wrappedKey = await target.wrap(randomBytes(keyBytes), contextOf(scope, version));
    // False means that another rotation was faster. Its key is as new.
    await store.insert({ scope, version, masterKeyId: target.id, wrappedKey });
  }
  return scopes.length;
}

/**
 * Rewraps under `target` every data key that is wrapped under another master key. Each row is rewrapped by itself, so
 * the work can stop anywhere and start again, and every row stays readable at all times.
 */
export async function rewrapDataKeys(
  store: RotationStore,
  masterKeys: MasterKeyRing,
  target: MasterKey,
): Promise<number> {
  for (let rewrapped = 0; ; ) {
    const rows = await store.wrappedByOthers(target.id, rowsAtOnce);
    if (rows.length === 0) return rewrapped;
    for (const row of rows) {
      const dataKey = await unwrapDataKey(masterKeys, row);
      const wrappedKey = await target.wrap(dataKey, contextOf(row.scope, row.version));
      await store.rewrap(row, { masterKeyId: target.id, wrappedKey });
      rewrapped += 1;
    }
  }
}
