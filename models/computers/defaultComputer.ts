import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { requireLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type Computer, computerColumns, computerOf, getComputer } from './computer.ts';

export const defaultComputerName = 'Computer';

/** Gives the space its default computer, unless it has one. */
export async function addDefaultComputer(tx: Transaction, spaceId: string, createdBy: string | null): Promise<void> {
  const now = new Date();
  await execute(
    tx,
    `INSERT IGNORE INTO computers
      (id, space_id, default_of, name, env_names, status, status_at, generation, created_by, created_at) VALUES (?)`,
    [[newId('computer'), spaceId, spaceId, defaultComputerName, '[]', 'created', now, 0, createdBy, now]],
  );
}

/**
 * The computer that a request without a computer means. A space that an older release made during an upgrade gets its
 * computer here.
 */
export async function defaultComputer(database: Database, spaceId: string): Promise<Computer> {
  const known = await find(database, spaceId);
  if (known !== undefined) return known;
  await transaction(database, async (tx) => {
    await requireLivingSpace(tx, spaceId);
    await addDefaultComputer(tx, spaceId, null);
  });
  const made = await find(database, spaceId);
  if (made === undefined) throw notFound('computer');
  return made;
}

/** The computer that a request names, or the space's default one. Throws 404. */
export function requestedComputer(database: Database, spaceId: string, id: string | undefined): Promise<Computer> {
  return id === undefined ? defaultComputer(database, spaceId) : getComputer(database, spaceId, id);
}

async function find({ pool }: Database, spaceId: string): Promise<Computer | undefined> {
  const [row] = await select(pool, `SELECT ${computerColumns} FROM computers WHERE default_of = ?`, [spaceId]);
  return row && computerOf(row);
}
