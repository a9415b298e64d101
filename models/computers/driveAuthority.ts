import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import type { DriveAccess, DriveReport } from './computer.ts';

/** With which authority the programs of a computer use the drive of its space. */
export interface DriveAuthority {
  computerId: string;
  spaceId: string;
  /** The computer's. */
  name: string;
  /** Who made the computer: an owner of the space if that is not known. Null if neither is a member now. */
  userId: string | null;
  access: DriveAccess;
  /** Whether that person may change the drive. So what was written is sent, though the computer is deleted by then. */
  mayChange: boolean;
}

interface AuthorityRow {
  computerId: string;
  spaceId: string;
  name: string;
  hasDrive: number;
  deletedAt: Date | null;
  userId: string | null;
  role: 'owner' | 'editor' | 'viewer' | null;
}

/**
 * The authorities of these computers as they are now, by computer. Programs may do what the person who made their
 * computer may do. Those of a deleted computer may do nothing, and a deleted space has none.
 */
export async function driveAuthorities(
  { pool }: Pick<Database, 'pool'>,
  computerIds: readonly string[],
): Promise<Map<string, DriveAuthority>> {
  if (computerIds.length === 0) return new Map();
  const rows = await select<AuthorityRow>(
    pool,
    `SELECT c.id AS computerId, c.space_id, c.name, c.has_drive, c.deleted_at, u.id AS userId, m.role
       FROM computers c JOIN spaces s ON s.id = c.space_id AND s.deleted_at IS NULL
       LEFT JOIN space_members m ON m.space_id = c.space_id AND m.user_id = COALESCE(c.created_by, (
         SELECT o.user_id FROM space_members o WHERE o.space_id = c.space_id AND o.role = 'owner'
          ORDER BY o.user_id LIMIT 1))
       LEFT JOIN users u ON u.id = m.user_id AND u.disabled_at IS NULL
      WHERE c.id IN (?)`,
    [computerIds],
  );
  return new Map(
    rows.map((row) => {
      const { computerId, spaceId, name, userId, role } = row;
      const mayChange = userId !== null && role !== null && role !== 'viewer';
      return [computerId, { computerId, spaceId, name, userId, access: accessOf(row), mayChange }];
    }),
  );
}

function accessOf({ hasDrive, deletedAt, userId, role }: AuthorityRow): DriveAccess {
  if (!hasDrive || deletedAt !== null || userId === null || role === null) return 'none';
  return role === 'viewer' ? 'read' : 'write';
}

/** Notes what its host says of the drive in a computer. */
export async function noteDrive(
  { pool }: Pick<Database, 'pool'>,
  computerId: string,
  driveReport: DriveReport,
): Promise<void> {
  await execute(pool, 'UPDATE computers SET ? WHERE id = ?', [{ driveReport }, computerId]);
}
