import type { AccountConnection } from '../accountConnection.ts';
import { mayPass, notWhole, TenantServerError } from '../errors.ts';
import { type Entry, format } from './entries.ts';
import type { LeftOut } from './leftOut.ts';

type Definition = Extract<Entry, { define: string }>;

/**
 * Restores a dump into an empty database, over its tenant's connection, so that the dump can do no more than its
 * tenant. Its statements go to the server unchanged. No program parses them.
 */
export async function restoreDatabase(
  connection: AccountConnection,
  entries: AsyncIterable<Entry>,
  { name, isMariaDb, leftOut }: { name: string; isMariaDb: boolean; leftOut?: LeftOut | undefined },
): Promise<void> {
  await connection.run('SET SESSION foreign_key_checks = 0, unique_checks = 0');
  // The data may have been written while these were off.
  if (isMariaDb) await connection.run('SET SESSION check_constraint_checks = 0, innodb_strict_mode = 0');
  let former = name;
  const later: Definition[] = [];
  let isWhole = false;
  let mode: string | undefined;
  for await (const entry of entries) {
    if ('begin' in entry) {
      if (entry.begin !== format) throw new TenantServerError({ code: notWhole });
      former = entry.name;
    } else if ('end' in entry) isWhole = true;
    else if ('rows' in entry) await insert(() => connection.run(entry.rows));
    else if ('row' in entry) await insert(() => connection.put(entry.row, entry.values.map(asValue)));
    else if (entry.last === undefined) await define(entry);
    else later.push(entry);
  }
  if (!isWhole) throw new TenantServerError({ code: notWhole });
  await defineViews(later.filter(({ last }) => last === 'view'));
  for (const trigger of later.filter(({ last }) => last === 'trigger')) {
    if (!(await defines(trigger))) leaveOut(trigger);
  }

  async function setMode(wanted: string, collation?: string): Promise<void> {
    const names = collation === undefined ? '' : `, collation_connection = '${collation.replace(/\W/g, '')}'`;
    if (mode === wanted && names === '') return;
    // 0 instead of an empty text, which is NULL in one of the modes.
    await connection.run(`SET SESSION sql_mode = ?, time_zone = '+00:00'${names}`, [wanted === '' ? 0 : wanted]);
    mode = wanted;
  }

  async function insert(work: () => Promise<void>): Promise<void> {
    await setMode('NO_AUTO_VALUE_ON_ZERO');
    await work();
  }

  async function define({ define: text, mode: wanted, collation }: Definition): Promise<void> {
    await setMode(wanted, collation);
    // The server shows the name in some definitions. Atrium made the name, so it is no word of the tenant's.
    await connection.run(text.replaceAll(former, name));
  }

  /** False if the server refuses it, for example because it was broken before the backup. */
  async function defines(entry: Definition): Promise<boolean> {
    try {
      await define(entry);
      return true;
    } catch (error) {
      if (!(error instanceof TenantServerError) || mayPass(error)) throw error;
      return false;
    }
  }

  /** A view can use other views, so retry while any succeeds. Views of something that does not exist are left out. */
  async function defineViews(views: Definition[]): Promise<void> {
    for (let left = views; left.length > 0; ) {
      const failed: Definition[] = [];
      for (const view of left) if (!(await defines(view))) failed.push(view);
      if (failed.length === left.length) return failed.forEach(leaveOut);
      left = failed;
    }
  }

  /** The first backups do not have their names. */
  function leaveOut({ last, name: its = 'unknown' }: Definition): void {
    if (last !== undefined) leftOut?.add({ kind: last, name: its });
  }
}

function asValue(value: string | { bytes: string } | null): string | Buffer | null {
  return value === null || typeof value === 'string' ? value : Buffer.from(value.bytes, 'base64');
}
