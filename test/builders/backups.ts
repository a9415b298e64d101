import { join } from 'node:path';
import type { Manifest } from '../../backup/vault/manifests.ts';
import { openVault } from '../../backup/vault/openVault.ts';
import { makeRecoveryKey } from '../../backup/vault/recoveryKey.ts';
import type { Vault } from '../../backup/vault/vault.ts';
import type { BackupConfig } from '../../config/backup.ts';
import { temporaryFolder } from '../support/folders.ts';

/** A place for backups in a folder, with a key. */
export async function buildVault(): Promise<{ backup: BackupConfig & { to: string; keyFile: string }; vault: Vault }> {
  const folder = temporaryFolder();
  const [to, keyFile] = [join(folder, 'backups'), join(folder, 'recovery.key')];
  await makeRecoveryKey(keyFile);
  const none = { endpoint: undefined, accessKeyId: undefined, secretAccessKey: undefined };
  const backup = { to, keyFile, s3: { region: 'us-east-1', ...none } };
  const vault = await openVault(backup, { makes: true });
  await vault.look();
  return { backup, vault };
}

/** The manifest of an empty backup, with the given fields. */
export function manifestOf(fields: Partial<Manifest> & { at: string }): Omit<Manifest, 'format'> {
  const nothing = { bytes: 0, pieces: [] };
  return {
    finishedAt: fields.at,
    installation: 'test',
    migrations: [],
    server: 'MariaDB',
    database: nothing,
    objects: nothing,
    objectCount: 0,
    objectBytes: 0,
    tenants: [],
    homes: null,
    keys: {},
    kmsKeyId: null,
    gaps: [],
    missing: { count: 0, named: [] },
    newBytes: 0,
    ...fields,
  };
}
