import { newId } from '../../base/ids.ts';
import { getComputer } from '../../models/computers/computer.ts';
import { type HostReport, reportHost } from '../../models/computers/hosts.ts';
import { execute, select } from '../../models/database/sql.ts';
import type { TestEnvironment } from '../support/environment.ts';
import { buildIdentity, buildSpace, buildUser } from './identity.ts';

/** The default computer of a new space, with these columns. No host and no home: it is its rows. */
export async function buildComputerRow(environment: TestEnvironment, columns: Record<string, unknown> = {}) {
  const { database } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const found = await select<{ id: string }>(database.pool, 'SELECT id FROM computers WHERE space_id = ?', [space.id]);
  const { id } = found[0] ?? { id: '' };
  const set = (changes: Record<string, unknown>) =>
    execute(database.pool, 'UPDATE computers SET ? WHERE id = ?', [changes, id]);
  if (Object.keys(columns).length > 0) await set(columns);
  const actor = { userId: user.id, credentialId: null, address: null };
  return {
    id,
    spaceId: space.id,
    userId: user.id,
    request: { spaceId: space.id, computerId: id, actor },
    set,
    get: () => getComputer(database, space.id, id),
  };
}

/** Reports a host, which has room for nine computers. Returns its id. */
export async function reportTestHost(
  { database }: Pick<TestEnvironment, 'database'>,
  more: Partial<HostReport> = {},
): Promise<string> {
  const id = newId('computerHost');
  const size = { cpuMilli: 2_000, memoryMiB: 8_192, maxRunning: 9 };
  await reportHost(database, { id, address: null, drivers: ['bubblewrap'], ...size, ...more });
  return more.id ?? id;
}

/** Removes all hosts and computers, since placing counts all of them. */
export async function removeComputerRows({ database }: TestEnvironment): Promise<void> {
  for (const table of ['computer_hosts', 'computer_remains', 'computers']) {
    await database.pool.query(`DELETE FROM ${table}`);
  }
}

/** As if nobody had heard of the host for years. */
export async function silenceHost({ database }: TestEnvironment, id: string): Promise<void> {
  await database.pool.query("UPDATE computer_hosts SET seen_at = '2020-01-01' WHERE id = ?", [id]);
}
