import { readManifest } from '../../backup/vault/manifests.ts';
import { openVault } from '../../backup/vault/openVault.ts';
import type { Config } from '../../config/index.ts';
import { off, ok, wrong } from './check.ts';
import { commandLine } from './commandLine.ts';

const oldestHours = 48;
const hourMs = 3_600_000;

/**
 * Says when the last good backup was. Does not read its contents: `backup verify` does that. `emptyDataDir` is set
 * where the data directory is still empty; then a backup could be restored.
 */
export async function checkBackups({ backup }: Pick<Config, 'backup'>, emptyDataDir?: string) {
  if (backup.to === undefined) return off('not set (ATRIUM_BACKUP_TO): nothing looks after backups');
  const vault = await openVault(backup);
  try {
    const { at, gaps } = await readManifest(vault);
    if (emptyDataDir !== undefined) {
      return off(
        `there is one of ${at} in ${vault.place.title}, and nothing in ${emptyDataDir} yet: "${commandLine} restore" restores it, "npm start" begins anew`,
      );
    }
    const hours = Math.floor((Date.now() - Date.parse(at)) / hourMs);
    const lacks = gaps.length === 0 ? '' : `; it lacks ${gaps.join(', ')}`;
    const said = `the last good one is of ${at}, in ${vault.place.title}${lacks}`;
    return hours > oldestHours ? wrong(`${said}: ${hours} hours ago`) : ok(said);
  } finally {
    vault.place.close();
  }
}
