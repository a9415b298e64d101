import { localMasterKey } from './localMasterKey.ts';
import type { MasterKey } from './masterKey.ts';
import { promoteNextMasterKey, readOrCreateMasterKey, readOrCreateNextMasterKey } from './masterKeyFile.ts';
import { type MasterKeyConfig, openMasterKeys } from './openMasterKeys.ts';
import { type RotationReport, type RotationStore, rewrapDataKeys, rotateDataKeys } from './rotateKeys.ts';

/**
 * Rotates all keys while the installation runs. Every scope gets a new data key, and every data key is wrapped under
 * the configured master key, or under a new one if the master key is a file. An interrupted rotation can be started
 * again and completes.
 */
export async function rotateAllKeys(store: RotationStore, config: MasterKeyConfig): Promise<RotationReport> {
  const masterKeys = await openMasterKeys(config);
  const isFile = config.kms.keyId === undefined && config.masterKey === undefined;
  const target = isFile ? await nextInFile(config.dataDir) : await masterKeys.current();
  const rotated = await rotateDataKeys(store, target);
  let rewrapped = await rewrapDataKeys(store, masterKeys, target);
  if (isFile) {
    await promoteNextMasterKey(config.dataDir);
    // A process that wrapped a new data key just before the change used the former key.
    rewrapped += await rewrapDataKeys(store, masterKeys, target);
  }
  return { masterKeyId: target.id, rotated, rewrapped };
}

/**
 * The next master key. It is on disk before it wraps anything: running processes look there for keys they do not know.
 */
async function nextInFile(dataDir: string): Promise<MasterKey> {
  await readOrCreateMasterKey(dataDir);
  return localMasterKey(await readOrCreateNextMasterKey(dataDir));
}
