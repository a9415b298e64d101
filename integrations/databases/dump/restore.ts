import type { AccountConnection } from '../accountConnection.ts';
import { mayPass, notWhole, TenantServerError } from '../errors.ts';
import { type Entry, format } from './entries.ts';
import type { LeftOut } from './leftOut.ts';

type Definition = Extract<Entry, { define: string }>;

/**
 * Puts all of a dump into an empty database, over a connection of its tenant's: whatever is in it, it can do no more than
 * its tenant. Its statements go to the server as they are; no program reads them.
 */
export async function restoreDatabase(
  connection: AccountConnection,
  entries: AsyncIterable<Entry>,
  { name, isMariaDb, leftOut }: { name: string; isMariaDb: boolean; leftOut?: LeftOut | undefined },
): Promise<void> {
  await connection.run('SET SESSION foreign_key_checks = 0, unique_checks = 0');
  // What is there was let in while these were off.
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
    // Not as an empty text, which is NULL in one of the modes.
    await connection.run(`SET SESSION sql_mode = ?, time_zone = '+00:00'${names}`, [wanted === '' ? 0 : wanted]);
    mode = wanted;
  }

  async function insert(work: () => Promise<void>): Promise<void> {
    await setMode('NO_AUTO_VALUE_ON_ZERO');
    await work();
  }

  async function define({ define: text, mode: wanted, collation }: Definition): Promise<void> {
    await setMode(wanted, collation);
    // The server names it in some of what it shows. The name is one that Atrium has made, and no word of anybody's.
    await connection.run(text.replaceAll(former, name));
  }

  /** False where the server refuses it, as what did not work before it was backed up. */
  async function defines(entry: Definition): Promise<boolean> {
    try {
      await define(entry);
      return true;
    } catch (error) {
      if (!(error instanceof TenantServerError) || mayPass(error)) throw error;
      return false;
    }
  }

  /** A view can be one of others. What is of something that is not there is left out. */
  async function defineViews(views: Definition[]): Promise<void> {
    for (let left = views; left.length > 0; ) {
      const failed: Definition[] = [];
      for (const view of left) if (!(await defines(view))) failed.push(view);
      if (failed.length === left.length) return failed.forEach(leaveOut);
      left = failed;
    }
  }

  /** The first backups have no names of them. */
  function leaveOut({ last, name: its = 'unknown' }: Definition): void {
    if (last !== undefined) leftOut?.add({ kind: last, name: its });
  }
}

function asValue(value: string | { bytes: string } | null): string | Buffer | null {
  return value === null || typeof value === 'string' ? value : Buffer.from(value.bytes, 'base64');
}
