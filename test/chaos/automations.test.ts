import { newId } from '../../base/ids.ts';
import { askToRun, takeDueRun } from '../../models/automations/runs.ts';
import { automationsOf, deliver } from '../builders/automations.ts';
import type { ChatUser } from '../builders/chat.ts';
import { buildProduct, type TestProduct } from '../builders/product.ts';
import { inFull } from '../support/inFull.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { sizeOf } from '../support/size.ts';
import { waitFor } from '../support/waitFor.ts';

const full = inFull('automations');

// Each tick and each delivery makes one run, however often it is reported and whichever process is killed.

const deliveries = sizeOf('AUTOMATION_DELIVERIES', 20);
const kills = sizeOf('AUTOMATION_KILLS', 2);

// Each kill costs a start, which takes long on a busy machine.
jest.setTimeout(600_000);

let product: TestProduct;
let user: ChatUser;
let own: ReturnType<typeof automationsOf>;
beforeAll(async () => {
  product = await buildProduct({ ...hurriedSweeper, ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' });
  user = await product.user();
  own = automationsOf(user);
});
afterAll(() => product.close());

const hourMs = 3_600_000;
const limits = { catchUpMs: 6 * hourMs, maxRunsPerDay: 500, aheadMs: 0 };
// No tick of these schedules comes while a test runs.
const rarely = { cron: '0 3 1 1 *', timeZone: 'UTC' };
const hour = new Date().getUTCHours();
const often = { cron: `*/5 ${(hour + 22) % 24},${(hour + 23) % 24} * * *`, timeZone: 'UTC' };

const dueSince = (id: string, msAgo: number) =>
  product.environment.database.pool.query('UPDATE automations SET next_run_at = ? WHERE id = ?', [
    new Date(Date.now() - msAgo),
    id,
  ]);

test('A due tick runs once, even if ten callers try to take it at once', async () => {
  const { database } = product.environment;
  const made = await own.make({ schedule: rarely });
  await dueSince(made.id, 1_000);
  const taken = await Promise.all(Array.from({ length: 10 }, () => takeDueRun(database, made.id, limits)));
  expect(taken.filter((runId) => runId !== undefined).length).toBeLessThanOrEqual(1);
  const runs = await own.ended(made.id);
  expect(runs).toMatchObject([{ kind: 'schedule', status: 'completed', scheduledAt: expect.any(String) }]);
  const { nextRunAt } = await own.get(made.id);
  expect(Date.parse(nextRunAt ?? '')).toBeGreaterThan(Date.now());
});

test('After an outage the missed ticks make one run, and a tick that is too old is skipped as MISSED', async () => {
  const [made, rare] = [await own.make({ schedule: often }), await own.make({ schedule: rarely })];
  await dueSince(made.id, 2 * hourMs);
  await dueSince(rare.id, 7 * hourMs);
  const [run, ...more] = await own.ended(made.id);
  expect([run?.status, more]).toEqual(['completed', []]);
  expect(Date.now() - Date.parse(run?.scheduledAt ?? '')).toBeLessThan(2 * hourMs);
  expect(await own.ended(rare.id)).toMatchObject([{ status: 'skipped', turnId: null, error: { code: 'MISSED' } }]);
  expect(Date.parse((await own.get(rare.id)).nextRunAt ?? '')).toBeGreaterThan(Date.now());
});

test('A requested run whose workflow never began is begun by the sweeper', async () => {
  const made = await own.make();
  const runId = newId('automationRun');
  const where = { spaceId: user.spaceId, userId: user.id, id: made.id };
  await askToRun(product.environment.database, where, runId, limits);
  expect(await own.ended(made.id)).toMatchObject([{ id: runId, status: 'completed' }]);
});

full.test('Deliveries that are repeated while the process is killed run once each', async () => {
  const made = await own.make({ overlap: 'queue' });
  const secret = await own.secret(made.id);
  const ids = Array.from({ length: deliveries }, (_, number) => `msg_${number}`);
  const accepted = new Set<string>();
  const sendAll = async () => {
    for (const id of ids) {
      const answer = await deliver(product.url, made.id, secret, { id, body: { id } }).catch(() => undefined);
      if (answer?.status === 200) accepted.add(id);
    }
  };
  for (let kill = 0; kill < kills; kill++) {
    const sending = sendAll();
    await waitFor('some deliveries', async () => accepted.size > (deliveries * kill) / kills / 2);
    await product.process.kill('SIGKILL');
    await sending;
    await product.restart();
  }
  await sendAll();
  expect(accepted.size).toBe(deliveries);
  const runs = await own.ended(made.id, deliveries);
  expect(runs.map(({ status }) => status)).toEqual(ids.map(() => 'completed'));
  expect(new Set(runs.map(({ turnId }) => turnId)).size).toBe(deliveries);
  const { data } = await user.get<{ data: { role: string; parts: unknown[] }[] }>(
    `/api/threads/${made.threadId}/messages?limit=200`,
  );
  const asked = data.filter(({ role }) => role === 'user').map(({ parts }) => JSON.stringify(parts));
  expect(asked).toHaveLength(deliveries);
  for (const id of ids) expect(asked.filter((parts) => parts.includes(`\\"${id}\\"`))).toHaveLength(1);
});

test('Deleting an automation or its space removes the automation and its runs', async () => {
  const { pool } = product.environment.database;
  const rowsOf = async (id: string) => {
    const [rows] = await pool.query(
      'SELECT id FROM automations WHERE id = ? UNION ALL SELECT id FROM automation_runs WHERE automation_id = ?',
      [id, id],
    );
    return (rows as unknown[]).length;
  };
  const made = await own.make({ schedule: often });
  await own.run(made.id);
  await own.ended(made.id);
  await own.send('DELETE', `/${made.id}`);
  await waitFor('the deleted automation to be removed', async () => (await rowsOf(made.id)) === 0);

  const other = await product.user();
  const theirs = await automationsOf(other).make({ schedule: often });
  await automationsOf(other).run(theirs.id);
  await automationsOf(other).ended(theirs.id);
  await other.fetch(`/api/spaces/${other.spaceId}`, { method: 'DELETE' });
  await waitFor('the automations of the space to be removed', async () => (await rowsOf(theirs.id)) === 0);
});
