import { localMasterKey } from './localMasterKey.ts';
import type { MasterKey, MasterKeyRing } from './masterKey.ts';
import { readMasterKeys, readOrCreateMasterKey } from './masterKeyFile.ts';

/**
 * The master keys of the data directory. The files are read again for each new data key and for each unknown key id.
 * Both are rare, and a rotation by another process thus needs no restart of this one.
 */
export async function fileMasterKeys(dataDir: string): Promise<MasterKeyRing> {
  await readOrCreateMasterKey(dataDir);
  const known = new Map<string, MasterKey>();

  async function load(): Promise<MasterKey> {
    const [current, ...others] = (await readMasterKeys(dataDir)).map(localMasterKey);
    if (current === undefined) throw new Error('The master key is gone from the data directory.');
    for (const key of [current, ...others]) known.set(key.id, key);
    return current;
  }

  await load();
  return {
    current: load,
    async byId(id) {
      if (!known.has(id)) await load();
      return known.get(id);
    },
  };
}
