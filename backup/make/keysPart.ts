import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { masterKeyFileName, nextKeyFileName, previousKeyFileName } from '../../crypto/masterKeyFile.ts';
import type { MasterKeyConfig } from '../../crypto/openMasterKeys.ts';
import type { Manifest } from '../vault/manifests.ts';

export const keyFileNames = [masterKeyFileName, nextKeyFileName, previousKeyFileName] as const;

/**
 * Reads all master keys of this installation, from the files of the data directory and from the settings. Read after
 * the database: a rotation writes a new key to its file before it wraps anything with it. A key in AWS KMS stays there.
 */
export async function readKeys(config: MasterKeyConfig): Promise<Pick<Manifest, 'keys' | 'kmsKeyId'>> {
  const keys: Record<string, string> = {};
  for (const name of keyFileNames) {
    const text = await readFile(join(config.dataDir, name), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
    if (text !== undefined) keys[name] = text.trim();
  }
  const given = [config.masterKey, ...config.otherMasterKeys].filter((key) => key !== undefined);
  for (const [at, key] of given.entries()) keys[`${environmentPrefix}${at}`] = key;
  return { keys, kmsKeyId: config.kms.keyId ?? null };
}

/** Prefix of keys from the environment. The current one comes first. */
export const environmentPrefix = 'environment.';
