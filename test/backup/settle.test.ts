import type { RowDataPacket } from 'mysql2';
import { settle } from '../../backup/restore/settle.ts';
import type { NamedManifest } from '../../backup/vault/manifests.ts';
import { newId } from '../../base/ids.ts';
import { reportHost } from '../../models/computers/hosts.ts';
import { endCodeOf, findDesktop } from '../../models/desktops/session.ts';
import { installationOf } from '../../models/installation/installation.ts';
import { buildIdentity, buildSpace, buildUser } from '../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

// A restored installation must not repeat old work or let old credentials in.

const hourMs = 3_600_000;

let environment: TestEnvironment;
let spaceId: string;
let userId: string;
let token: string;
beforeAll(async () => {
  environment = await createTestEnvironment();
  const identity = await buildIdentity(environment);
  const built = await buildUser(identity);
  userId = built.user.id;
  token = built.token;
  spaceId = (await buildSpace(identity, userId)).space.id;
});
afterAll(() => environment.close());

const put = (table: string, row: object) => environment.database.pool.query(`INSERT INTO ${table} SET ?`, [row]);
async function rowsOf(sql: string, values: unknown[] = []): Promise<RowDataPacket[]> {
  return (await environment.database.pool.query<RowDataPacket[]>(sql, values))[0];
}
const settled = (tenants: { databaseId: string }[] = []) =>
  settle(environment, { id: 'backup', tenants } as unknown as NamedManifest);
const ago = (hours: number) => new Date(Date.now() - hours * hourMs);

test('a restore ends all sessions, codes and links', async () => {
  const identity = await buildIdentity(environment);
  await identity.sessions.authenticate(token);
  const later = new Date(Date.now() + hourMs);
  const link = { space_id: spaceId, created_by: userId, created_at: ago(1), expires_at: later };
  await put('port_links', { ...link, id: 'lnk_1', computer_id: 'cmp_1', port: 80, label: 'label' });
  await put('browser_links', { ...link, id: 'lnk_2', session_id: 'ses_1', token_hash: Buffer.alloc(32) });
  await put('desktop_links', { ...link, id: 'lnk_3', session_id: 'ses_1', control: 1, ttl_seconds: 60 });
  await identity.codes.create(userId);
  await settled();
  await expect((await buildIdentity(environment)).sessions.authenticate(token)).rejects.toThrow();
  expect(await rowsOf('SELECT hash FROM auth_codes')).toEqual([]);
  for (const table of ['port_links', 'desktop_links']) {
    expect(await rowsOf(`SELECT id FROM ${table} WHERE revoked_at IS NULL`)).toEqual([]);
  }
  expect(await rowsOf('SELECT id FROM browser_links WHERE expires_at > NOW(3) OR token_hash IS NOT NULL')).toEqual([]);
});

test('schedules continue with the next tick and do not catch up on earlier ones', async () => {
  const common = { space_id: spaceId, user_id: userId, thread_id: 'thr_1', name: 'n', prompt: 'p', mode: 'agent' };
  const more = { files: '[]', overlap: 'skip', enabled: 1, created_at: ago(9), updated_at: ago(9) };
  const clock = { cron: '0 * * * *', time_zone: 'UTC' };
  const [hourly, once, later] = [newId('automation'), newId('automation'), newId('automation')];
  const future = new Date(Date.now() + hourMs);
  future.setMilliseconds(0);
  await put('automations', { ...common, ...more, ...clock, id: hourly, next_run_at: ago(2) });
  await put('automations', { ...common, ...more, id: once, run_at: ago(1), next_run_at: ago(1) });
  await put('automations', { ...common, ...more, id: later, run_at: future, next_run_at: future });
  const rest = { item_id: 'itm_1', failures: 0, version: 1, created_at: ago(9) };
  const schedule = { id: newId('appSchedule'), app_id: 'app_1', space_id: spaceId, component: 'c', ...clock };
  await put('app_schedules', { ...schedule, jitter_seconds: 0, enabled: 1, next_at: ago(2), due_at: ago(2), ...rest });
  await settled();
  const next = new Map((await rowsOf('SELECT id, next_run_at AS at FROM automations')).map(({ id, at }) => [id, at]));
  expect(next.get(hourly).getTime()).toBeGreaterThan(Date.now());
  expect(next.get(once)).toBeNull();
  expect(next.get(later)).toEqual(future);
  expect(await rowsOf('SELECT id FROM automation_runs')).toEqual([]);
  const [app] = await rowsOf('SELECT next_at AS nextAt, due_at AS dueAt FROM app_schedules');
  expect(app?.dueAt.getTime()).toBeGreaterThan(Date.now());
  expect(app?.dueAt).toEqual(app?.nextAt);
});

test('a restore stops the computers that ran, with what ran on them, and charges what their host had confirmed', async () => {
  const common = { space_id: spaceId, name: 'Desk', env_names: '[]', generation: 3, created_at: ago(9) };
  const ran = { host_id: 'hst_1', status_at: ago(2), started_at: ago(2), processes: 4 };
  const aliveAt = new Date(ago(2).getTime() + 90_000);
  await put('computers', { ...common, ...ran, id: 'cmp_running', status: 'running', alive_at: aliveAt });
  await put('computers', { ...common, ...ran, id: 'cmp_paused', status: 'paused', started_at: null });
  await put('computers', { ...common, ...ran, id: 'cmp_waking', status: 'starting', wish: 'wake', started_at: null });
  await put('computers', { ...common, ...ran, id: 'cmp_stopping', status: 'stopping', wish: 'stop', started_at: null });
  await put('computers', { ...common, id: 'cmp_new', status: 'created', status_at: ago(2) });
  const display = { display: 10, width: 800, height: 600, created_by: userId, created_at: ago(1), status_at: ago(1) };
  const desktop = { ...display, space_id: spaceId, computer_id: 'cmp_running', generation: 3, status: 'running' };
  await put('desktop_sessions', { ...desktop, id: 'dsk_1' });
  await settled();
  const sql = `SELECT id, status, wish, error_code AS code, processes, started_at AS startedAt,
      minutes_charged AS minutes FROM computers WHERE name = 'Desk' ORDER BY id`;
  const rows = await rowsOf(sql);
  const stopped = { status: 'stopped', wish: null, code: 'RESTORED', processes: 0, startedAt: null, minutes: 0 };
  expect(rows).toEqual([
    { ...stopped, id: 'cmp_new', status: 'created', code: null },
    { ...stopped, id: 'cmp_paused' },
    { ...stopped, id: 'cmp_running', minutes: 2 },
    { ...stopped, id: 'cmp_stopping' },
    { ...stopped, id: 'cmp_waking', wish: 'wake' },
  ]);
  const session = await findDesktop(environment.database, 'dsk_1');
  expect(session && endCodeOf(session)).toBe('COMPUTER_STOPPED');
});

test('a restore turns automatic charges off', async () => {
  const auto = { auto_enabled: 1, auto_threshold: 1, auto_amount_minor: 500, auto_user_id: userId };
  await put('billing_settings', { space_id: newId('space'), status: 'ready', ...auto, created_at: ago(1) });
  await settled();
  expect(
    await rowsOf('SELECT space_id FROM billing_settings WHERE auto_enabled = 1 AND auto_failed_at IS NULL'),
  ).toEqual([]);
});

test('databases of spaces are recreated from the backup, or else from their newest own backup, deleted ones too', async () => {
  const made = { space_id: spaceId, state: 'living', is_made: 1, version: 1, created_by: userId, created_at: ago(1) };
  const names = ['backed', 'own', 'none', 'deleted'] as const;
  for (const name of names) {
    const row = { ...made, id: `db_${name}`, name, live_name: name, server_name: name };
    await put('space_databases', name === 'deleted' ? { ...row, state: 'deleted', live_name: null } : row);
  }
  const backup = { space_id: spaceId, state: 'kept', created_at: ago(1) };
  for (const [id, databaseId] of [
    ['bkp_1', 'db_own'],
    ['bkp_2', 'db_own'],
    ['bkp_3', 'db_deleted'],
  ] as const) {
    await put('space_database_backups', { ...backup, id, database_id: databaseId });
  }
  await settled([{ databaseId: 'db_backed' }]);
  const rows = await rowsOf('SELECT id, is_made AS isMade, restores FROM space_databases ORDER BY id');
  expect(rows).toEqual([
    { id: 'db_backed', isMade: 0, restores: null },
    { id: 'db_deleted', isMade: 0, restores: 'bkp_3' },
    { id: 'db_none', isMade: 0, restores: null },
    { id: 'db_own', isMade: 0, restores: 'bkp_2' },
  ]);
});

test('the restored installation has a new identity, is quiet and has no host addresses', async () => {
  const before = await installationOf(environment.database);
  const host = { drivers: [], cpuMilli: 1_000, memoryMiB: 1_000, maxRunning: 1 };
  await reportHost(environment.database, { ...host, id: 'hst_1', address: 'https://host.example' });
  await settled();
  const after = await installationOf(environment.database);
  expect(after).toMatchObject({ restoredFrom: 'backup', quietSince: expect.any(Date) });
  expect(after.identity).not.toBe(before.identity);
  expect(await rowsOf('SELECT address FROM computer_hosts')).toEqual([{ address: null }]);
});

test('damaged and missing objects that have a hash are checked again', async () => {
  const object = { space_id: spaceId, state: 'kept', is_complete: 1, size: 1, created_at: ago(9), found_at: ago(1) };
  const sha256 = Buffer.alloc(32);
  await put('drive_objects', { ...object, object_key: 'a', finding: 'damaged', sha256 });
  await put('drive_objects', { ...object, object_key: 'b', finding: 'missing', sha256 });
  await put('drive_objects', { ...object, object_key: 'c', finding: 'missing' });
  await put('drive_objects', { ...object, object_key: 'd', found_at: null, sha256 });
  await settled();
  const rows = await rowsOf('SELECT finding FROM drive_objects ORDER BY object_key');
  expect(rows.map(({ finding }) => finding as unknown)).toEqual(['suspect', 'suspect', 'missing', null]);
});
