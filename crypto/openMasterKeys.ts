import { type Config, ConfigError } from '../config/index.ts';
import { fileMasterKeys } from './fileMasterKeys.ts';
import { localMasterKey } from './localMasterKey.ts';
import { keyRing, type MasterKey, type MasterKeyRing } from './masterKey.ts';
import { masterKeyFileName, readMasterKeys } from './masterKeyFile.ts';

export type MasterKeyConfig = Pick<Config, 'masterKey' | 'otherMasterKeys' | 'kms' | 'dataDir'>;

/**
 * The configured master keys. This is the one place that chooses between sources: AWS KMS if it is named, else the key
 * of the environment, else the file in the data directory. Keys of the other sources still unwrap, so that `atrium
 * rotate-key` can move from any source to any other.
 */
export async function openMasterKeys(config: MasterKeyConfig): Promise<MasterKeyRing> {
  const given = [config.masterKey, ...config.otherMasterKeys]
    .filter((key) => key !== undefined)
    .map((key) => localMasterKey(Buffer.from(key, 'base64')));
  if (config.kms.keyId !== undefined) {
    // Imported on demand: the AWS client is large, and few installations need it.
    const { kmsMasterKey } = await import('./kmsMasterKey.ts');
    const kms = kmsMasterKey({ ...config.kms, keyId: config.kms.keyId });
    return withFile(config.dataDir, kms, given);
  }
  const [current] = given;
  if (config.masterKey !== undefined && current !== undefined) return withFile(config.dataDir, current, given);
  return withOthers(await fileMasterKeys(config.dataDir), given);
}

/**
 * Throws a {@link ConfigError} when a process in production would make a master key of its own. Other processes could
 * not open what it seals, and the key would be lost with its container.
 */
export async function requireMasterKey({ env, masterKey, kms, dataDir }: MasterKeyConfig & Pick<Config, 'env'>) {
  if (env !== 'production' || masterKey !== undefined || kms.keyId !== undefined) return;
  if ((await readMasterKeys(dataDir)).length > 0) return;
  throw new ConfigError(
    `ATRIUM_MASTER_KEY is not set, and there is no ${masterKeyFileName} in ${dataDir}. All processes of an installation need the same key: give them the one that it has, or for a new installation make one with "openssl rand -base64 32".`,
  );
}

/** Reads the file only for an otherwise unknown key, and never creates it. */
function withFile(dataDir: string, current: MasterKey, given: readonly MasterKey[]): MasterKeyRing {
  const ring = keyRing(current, given);
  return {
    current: ring.current,
    async byId(id) {
      const found = await ring.byId(id);
      if (found !== undefined) return found;
      return (await readMasterKeys(dataDir)).map(localMasterKey).find((key) => key.id === id);
    },
  };
}

function withOthers(ring: MasterKeyRing, others: readonly MasterKey[]): MasterKeyRing {
  return {
    current: ring.current,
    byId: async (id) => (await ring.byId(id)) ?? others.find((key) => key.id === id),
  };
}
