import type { TenantConnection } from './connection.ts';

/** A connection to the server, and what it does. */
export interface Process {
  id: number;
  user: string;
  isIdle: boolean;
  /** Since it does so. */
  seconds: number;
}

/**
 * All connections. Not from the table of them: on MySQL that cannot be read at all while somebody's statement has bytes
 * that are no letters, as values of prepared statements may be.
 */
export async function processesOn(connection: TenantConnection): Promise<Process[]> {
  const rows = await connection.rows<{ Id: number; User: string; Command: string; Time: number | null }>(
    'SHOW PROCESSLIST',
  );
  return rows.map(({ Id: id, User: user, Command, Time }) => ({
    ...{ id: Number(id), user, isIdle: Command === 'Sleep', seconds: Number(Time ?? 0) },
  }));
}
