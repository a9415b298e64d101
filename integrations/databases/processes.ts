import type { TenantConnection } from './connection.ts';

/** A connection to the server, and what it does. */
export interface Process {
  id: number;
  user: string;
  isIdle: boolean;
  /** How long it has been in this state. */
  seconds: number;
}

/**
 * All connections. Not from the table of processes, because MySQL cannot read that while a statement has bytes that are
 * not valid text, such as values of prepared statements.
 */
export async function processesOn(connection: TenantConnection): Promise<Process[]> {
  const rows = await connection.rows<{ Id: number; User: string; Command: string; Time: number | null }>(
    'SHOW PROCESSLIST',
  );
  return rows.map(({ Id: id, User: user, Command, Time }) => ({
    ...{ id: Number(id), user, isIdle: Command === 'Sleep', seconds: Number(Time ?? 0) },
  }));
}
