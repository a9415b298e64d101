import type { Database } from '../database/database.ts';
import { type Runner, select } from '../database/sql.ts';

/** The environment of a computer, as it is shown. */
export interface UsedEnvironment {
  id: string;
  /** As the space can see it, or last could if it is shared no more. */
  name: string;
  version: number;
  /** Whether a newer version is ready, which the computer can be given. */
  isOutdated: boolean;
  /** False if it was deleted, or belongs to another space that shares it no more. The computer keeps its system. */
  isAvailable: boolean;
}

type Use = { spaceId: string; environmentVersionId: string | null };

/** For each of these computers, in order, its environment. */
export async function usedEnvironments(
  { pool }: Pick<Database, 'pool'>,
  computers: readonly Use[],
): Promise<(UsedEnvironment | null)[]> {
  const versionIds = computers.flatMap(({ environmentVersionId: id }) => (id === null ? [] : [id]));
  if (versionIds.length === 0) return computers.map(() => null);
  const newer = `SELECT 1 FROM environment_versions n
    WHERE n.environment_id = v.environment_id AND n.number > v.number AND n.status = 'ready' AND n.let_go_at IS NULL`;
  const sql = `SELECT v.id AS version_id, e.id, e.space_id, e.name, e.shared_name, v.number, e.deleted_at,
      e.shared_at,
      EXISTS (${newer}) AS has_newer
    FROM environment_versions v JOIN environments e ON e.id = v.environment_id WHERE v.id IN (?)`;
  type Row = Record<'versionId' | 'id' | 'spaceId' | 'name', string> &
    Record<'deletedAt' | 'sharedAt', Date | null> & { sharedName: string | null; number: number; hasNewer: number };
  const rows = new Map((await select<Row>(pool, sql, [versionIds])).map((row) => [row.versionId, row]));
  return computers.map(({ spaceId, environmentVersionId }) => {
    const row = rows.get(environmentVersionId ?? '');
    if (row === undefined) return null;
    const { id, number: version, deletedAt, sharedAt, hasNewer } = row;
    const isSeen = row.spaceId === spaceId || sharedAt !== null;
    const isAvailable = deletedAt === null && isSeen;
    const name = isSeen ? row.name : (row.sharedName ?? row.name);
    return { id, name, version, isOutdated: isAvailable && hasNewer === 1, isAvailable };
  });
}

/** Who uses an environment: computers of its space, by name and id, how many others there are, and environments. */
export interface Uses {
  computers: string[];
  environments: string[];
  ofOthers: number;
}

/** The computers that are of an environment, and the environments that have it as their base. */
export async function usesOf(on: Runner, { id, spaceId }: { id: string; spaceId: string }): Promise<Uses> {
  type Row = { id: string; spaceId: string; name: string };
  const onComputers = `SELECT c.id, c.space_id, c.name FROM environment_versions v
    JOIN computers c FORCE INDEX (computers_environment) ON c.environment_version_id = v.id AND c.deleted_at IS NULL WHERE v.environment_id = ? ORDER BY c.id`;
  const asBase = 'SELECT id, space_id, name FROM environments WHERE base = ? AND deleted_at IS NULL ORDER BY id';
  const [computers, environments] = [await select<Row>(on, onComputers, [id]), await select<Row>(on, asBase, [id])];
  const own = (rows: Row[]) => rows.filter((row) => row.spaceId === spaceId);
  return {
    computers: own(computers).map((row) => `${row.name} (${row.id})`),
    environments: own(environments).map((row) => row.name),
    ofOthers: computers.length + environments.length - own(computers).length - own(environments).length,
  };
}
