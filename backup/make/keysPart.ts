import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { masterKeyFileName, nextKeyFileName, previousKeyFileName } from '../../crypto/masterKeyFile.ts';
import type { MasterKeyConfig } from '../../crypto/openMasterKeys.ts';
import type { Manifest } from '../vault/manifests.ts';

export const keyFileNames = [masterKeyFileName, nextKeyFileName, previousKeyFileName] as const;

/**
 * All master keys of this installation, as the data directory has them or would have them. Read after the database: a key
 * that a rotation makes is in its file before it wraps anything. One in AWS KMS stays there.
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

/** Those of the environment, the current one first. */
export const environmentPrefix = 'environment.';
