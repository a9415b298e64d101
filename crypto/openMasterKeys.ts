import type { Config } from '../config/index.ts';
import { localMasterKey } from './localMasterKey.ts';
import { keyRing, type MasterKeyRing } from './masterKey.ts';
import { readOrCreateMasterKey } from './masterKeyFile.ts';

/**
 * The master keys this installation is configured with. This is the one place that chooses between sources: another
 * source (a key management service, the previous key during a rotation) is another line here.
 */
export async function openMasterKeys(config: Pick<Config, 'masterKey' | 'dataDir'>): Promise<MasterKeyRing> {
  const bytes =
    config.masterKey === undefined
      ? await readOrCreateMasterKey(config.dataDir)
      : Buffer.from(config.masterKey, 'base64');
  return keyRing(localMasterKey(bytes));
}
