import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { masterKeyFileName, nextKeyFileName, previousKeyFileName } from '../../crypto/masterKeyFile.ts';
import type { MasterKeyConfig } from '../../crypto/openMasterKeys.ts';
import { writeDurably } from '../../disk/durable.ts';
import { BackupError } from '../errors.ts';
import { environmentPrefix, keyFileNames } from '../make/keysPart.ts';
import type { Manifest } from '../vault/manifests.ts';

/** Files for keys that the backup has from the environment, the current one first. */
const places = [masterKeyFileName, previousKeyFileName, nextKeyFileName] as const;

/**
 * Writes the master keys to files of the data directory. These open sealed data whatever is configured. A key from the
 * environment becomes the current one there.
 */
export async function restoreKeys({ keys }: Pick<Manifest, 'keys'>, dataDir: string): Promise<void> {
  const files = new Map<string, string>();
  for (const name of keyFileNames) if (keys[name] !== undefined) files.set(name, keys[name]);
  const given = Object.keys(keys)
    .filter((name) => name.startsWith(environmentPrefix))
    .sort();
  // Keys from files come after those of the environment, since they were additional ones.
  const all = [...given.map((name) => keys[name] as string), ...files.values()];
  const placed = given.length === 0 ? files : new Map(places.flatMap((name, at) => pair(name, all[at])));
  if (given.length > 0 && all.length > places.length) {
    throw new BackupError(
      `This backup has ${all.length} master keys, which do not fit into a data directory. Finish the rotation with "atrium rotate-key" where it was made, and back up again.`,
    );
  }
  for (const [name, key] of placed) await writeDurably(join(dataDir, name), `${key}\n`);
}

/**
 * Removes the key files if another source of master keys is configured. By then everything is wrapped with that source.
 */
export async function removeKeys({ masterKey, kms, dataDir }: MasterKeyConfig): Promise<void> {
  if (masterKey === undefined && kms.keyId === undefined) return;
  await removeKeyFiles(dataDir);
}

/** Removes the files of {@link restoreKeys}. */
export async function removeKeyFiles(dataDir: string): Promise<void> {
  for (const name of keyFileNames) await rm(join(dataDir, name), { force: true });
}

function pair(name: string, key: string | undefined): [string, string][] {
  return key === undefined ? [] : [[name, key]];
}
