import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';

interface Placeholder {
  spaceId: string;
  name: string;
  variable: string;
  placeholder: string;
  hosts: string;
  inUrl: number;
  headers: string | null;
}

/** The placeholders that a computer was given. None for a deleted one. */
export async function placeholdersOf({ pool }: Pick<Database, 'pool'>, computerId: string): Promise<Placeholder[]> {
  const sql = `SELECT s.space_id, s.name, s.variable, s.placeholder, s.hosts, s.in_url, s.headers
       FROM computer_secrets s JOIN computers c ON c.id = s.computer_id
      WHERE s.computer_id = ? AND c.deleted_at IS NULL ORDER BY s.name`;
  return select<Placeholder>(pool, sql, [computerId]);
}

/** The variables that hold a computer’s placeholders. */
export async function placeholderVariables(
  database: Pick<Database, 'pool'>,
  computerId: string,
): Promise<Record<string, string>> {
  const rows = await placeholdersOf(database, computerId);
  return Object.fromEntries(rows.map(({ variable, placeholder }) => [variable, placeholder]));
}
