import type { DataKeyStore, WrappedDataKey } from '../../crypto/dataKeys.ts';
import type { RotationStore } from '../../crypto/rotateKeys.ts';

/** The table of data keys in memory. test/models/identity tests the real one. */
export function memoryStore(
  rows: WrappedDataKey[] = [],
): DataKeyStore & Pick<RotationStore, 'scopes'> & { rows: WrappedDataKey[] } {
  const of = (scope: string) => rows.filter((row) => row.scope === scope).sort((a, b) => b.version - a.version);
  return {
    rows,
    scopes: async () => [...new Set(rows.map(({ scope }) => scope))],
    latest: async (scope) => of(scope)[0],
    byVersion: async (scope, version) => of(scope).find((row) => row.version === version),
    insert: async (key) => {
      if (of(key.scope).some((row) => row.version === key.version)) return false;
      rows.push(key);
      return true;
    },
  };
}
