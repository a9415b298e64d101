import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { masterKeyFileName, nextKeyFileName, previousKeyFileName } from '../../crypto/masterKeyFile.ts';
import type { MasterKeyConfig } from '../../crypto/openMasterKeys.ts';
import { writeDurably } from '../../disk/durable.ts';
import { BackupError } from '../errors.ts';
import { environmentPrefix, keyFileNames } from '../make/keysPart.ts';
import type { Manifest } from '../vault/manifests.ts';

/** Where each is found again, the current one first. */
const places = [masterKeyFileName, previousKeyFileName, nextKeyFileName] as const;

/**
 * Puts the master keys back as files of the data directory, which open what was sealed whatever is configured. One that
 * was in the environment is the current one there.
 */
export async function restoreKeys({ keys }: Pick<Manifest, 'keys'>, dataDir: string): Promise<void> {
  const files = new Map<string, string>();
  for (const name of keyFileNames) if (keys[name] !== undefined) files.set(name, keys[name]);
  const given = Object.keys(keys)
    .filter((name) => name.startsWith(environmentPrefix))
    .sort();
  // The file's own keys were further ones beside those of the environment.
  const all = [...given.map((name) => keys[name] as string), ...files.values()];
  const placed = given.length === 0 ? files : new Map(places.flatMap((name, at) => pair(name, all[at])));
  if (given.length > 0 && all.length > places.length) {
    throw new BackupError(
      `This backup has ${all.length} master keys, which do not fit into a data directory. Finish the rotation with "atrium rotate-key" where it was made, and back up again.`,
    );
  }
  for (const [name, key] of placed) await writeDurably(join(dataDir, name), `${key}\n`);
}

/** Where another source of master keys is configured, all is wrapped under that by the end, and no file has to stay. */
export async function removeKeys({ masterKey, kms, dataDir }: MasterKeyConfig): Promise<void> {
  if (masterKey === undefined && kms.keyId === undefined) return;
  await removeKeyFiles(dataDir);
}

/** Takes back what {@link restoreKeys} has put there. */
export async function removeKeyFiles(dataDir: string): Promise<void> {
  for (const name of keyFileNames) await rm(join(dataDir, name), { force: true });
}

function pair(name: string, key: string | undefined): [string, string][] {
  return key === undefined ? [] : [[name, key]];
}
