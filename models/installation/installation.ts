import { randomBytes } from 'node:crypto';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';

type Pool = Pick<Database, 'pool'>;

/** Distinguishes an installation from a restored copy of it. */
export interface Installation {
  /** A restored copy gets a new one. */
  identity: string;
  /** The backup that this installation was restored from. */
  restoredFrom: string | null;
  /** While it is set, nothing reaches others by itself: see {@link isQuiet}. */
  quietSince: Date | null;
}

export async function installationOf({ pool }: Pool): Promise<Installation> {
  const sql = 'SELECT identity, restored_from, quiet_since FROM installation WHERE one = 1';
  const [row] = await select<Installation>(pool, sql);
  if (row === undefined) throw new Error('The database has no row of its installation.');
  return row;
}

/**
 * Whether the installation is quiet. Then automations, runs of apps by schedule or webhook, deliveries to webhook
 * endpoints and mail wait. A restored installation is quiet until an operator resumes it, since the original may still
 * run.
 */
export async function isQuiet({ pool }: Pool): Promise<boolean> {
  const sql = 'SELECT 1 FROM installation WHERE one = 1 AND quiet_since IS NOT NULL';
  const rows = await select(pool, sql);
  return rows.length > 0;
}

/** How often waiting work checks whether the installation is still quiet. */
export const quietLookMs = 60_000;

/** Gives a restored installation an identity of its own and makes it quiet. */
export async function renewInstallation({ pool }: Pool, backup: string): Promise<void> {
  const identity = `ins_${randomBytes(10).toString('hex')}`;
  const change = { identity, restoredFrom: backup, quietSince: new Date() };
  await execute(pool, 'UPDATE installation SET ? WHERE one = 1', [change]);
}

/** Ends the quiet. False if the installation was not quiet. */
export async function resumeInstallation({ pool }: Pool): Promise<boolean> {
  const sql = 'UPDATE installation SET quiet_since = NULL WHERE one = 1 AND quiet_since IS NOT NULL';
  const { affectedRows } = await execute(pool, sql);
  return affectedRows > 0;
}

/** The number of waiting objects, by kind. */
export interface Waiting {
  automations: number;
  appSchedules: number;
  appRuns: number;
  webhookDeliveries: number;
  mails: number;
}

export async function countWaiting({ pool }: Pool, now: Date): Promise<Waiting> {
  const count = async (sql: string, values: unknown[] = []) => {
    const rows = await select(pool, `SELECT COUNT(*) AS count FROM ${sql}`, values);
    return Number(rows[0]?.count);
  };
  const ticks = await count('automations WHERE next_run_at <= ?', [now]);
  const runs = await count("automation_runs WHERE status = 'pending'");
  return {
    automations: ticks + runs,
    appSchedules: await count('app_schedules WHERE due_at <= ?', [now]),
    appRuns: await count("app_runs WHERE status = 'queued'"),
    webhookDeliveries: await count("webhook_deliveries WHERE status = 'pending'"),
    mails: await count('mails'),
  };
}
