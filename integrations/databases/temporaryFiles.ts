import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { endConnection } from './align.ts';
import type { TenantConnection } from './connection.ts';
import { processesOn } from './processes.ts';

/** The disk limits for temporary tables: of one connection, and of all. */
const [mostOfOne, mostOfAll] = [512 * 1_048_576, 4_096 * 1_048_576];

/** MariaDB's file names of temporary tables, by process, connection and table. */
const named = /^#sql-temptable-[0-9a-f]+-(?<connection>[0-9a-f]+)-[0-9a-f]+\.MA[DI]$/;

/**
 * Ends connections whose temporary tables take too much disk, on a MariaDB server on this machine, for accounts with
 * these prefixes. MariaDB limits each table, but not their number. Returns how many connections were ended.
 */
export async function endLargeTemporary(
  connection: TenantConnection,
  prefixes: readonly string[],
  { ofOne = mostOfOne, ofAll = mostOfAll } = {},
): Promise<number> {
  if (!connection.isMariaDb) return 0;
  const [about] = await connection.rows<{ folder: string }>('SELECT @@tmpdir AS folder');
  const sizes = sizesIn(String(about?.folder));
  const total = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  if (total <= Math.min(ofOne, ofAll)) return 0;
  const open = await processesOn(connection);
  const ours = open
    .filter(({ id, user }) => sizes.has(id) && prefixes.some((prefix) => user.startsWith(prefix)))
    .map(({ id }) => ({ id, bytes: sizes.get(id) ?? 0 }))
    .toSorted((a, b) => b.bytes - a.bytes);
  const over = ours.filter(({ bytes }, at) => bytes > ofOne || (at === 0 && total > ofAll));
  for (const { id } of over) await endConnection(connection, id);
  return over.length;
}

/** Bytes by connection. */
function sizesIn(folder: string): ReadonlyMap<number, number> {
  const sizes = new Map<number, number>();
  for (const name of namesIn(folder)) {
    const hex = named.exec(name)?.groups?.connection;
    if (hex === undefined) continue;
    const id = Number.parseInt(hex, 16);
    const bytes = statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0;
    sizes.set(id, (sizes.get(id) ?? 0) + bytes);
  }
  return sizes;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // on another machine, or not readable
  }
}
