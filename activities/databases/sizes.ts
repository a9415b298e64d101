import { statfs } from 'node:fs/promises';
import type { TenantServer } from '../../integrations/databases/tenantServer.ts';
import { namesOf } from '../../models/databases/names.ts';
import { recordSizes } from '../../models/databases/sizes.ts';
import type { DatabaseDeps } from './deps.ts';

const lookEveryMs = 3_000;
/** The multiple of the minimum that must be free before databases get back the right to write. */
const recovered = 1.25;

type SizeDeps = Pick<DatabaseDeps, 'config' | 'database' | 'logger' | 'workflows'>;

/**
 * Measures the databases every few seconds. Revokes the right to write from those that are too large, or from all if
 * the server's disk is full. Gives it back when there is room again.
 */
export function watchSizes(deps: SizeDeps, tenantServer: TenantServer, signal: AbortSignal): Promise<void> {
  const { config, database, logger, workflows } = deps;
  const { maxBytes, maxTables } = config.databases;
  let isDiskFull = false;
  return tenantServer.watchSizes(
    namesOf(config.installation).database,
    async (sizes, defined) => {
      const isFullNow = await diskIsFull(config.databases, isDiskFull);
      if (isFullNow !== isDiskFull) {
        logger.warn({ isFullNow }, 'The disk of the database server became full, or has space again.');
      }
      isDiskFull = isFullNow;
      const changed = await recordSizes(database, sizes, { maxBytes, maxTables, isDiskFull, defined });
      for (const one of changed) void workflows.startDatabase(one);
    },
    {
      signal,
      everyMs: lookEveryMs,
      onFailure: (error) => logger.warn({ err: error }, 'The sizes of databases cannot be looked at.'),
    },
  );
}

async function diskIsFull(
  { folder, minFreeBytes }: { folder: string | undefined; minFreeBytes: number },
  wasFull: boolean,
): Promise<boolean> {
  if (folder === undefined) return false;
  const disk = await statfs(folder).catch(() => undefined);
  if (disk === undefined) return wasFull;
  return disk.bavail * disk.bsize < minFreeBytes * (wasFull ? recovered : 1);
}
