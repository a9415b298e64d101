import { findBrowser } from '../../../models/browsers/session.ts';
import { nextBrowserStep } from '../../../models/browsers/steps.ts';
import { defaultComputer } from '../../../models/computers/defaultComputer.ts';
import { browserRow } from '../../builders/browserRows.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { insertRows } from '../../builders/rows.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

/** A browser session of this status, on a computer with these columns. */
async function setUp(status: string, computer: Record<string, unknown>) {
  const { database } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const spaceId = (await buildSpace(identity, user.id)).space.id;
  const { id: computerId } = await defaultComputer(database, spaceId);
  const become = (row: Record<string, unknown>) =>
    database.pool.query('UPDATE computers SET ? WHERE id = ?', [row, computerId]);
  await become({ generation: 1, ...computer });
  const row = browserRow({ spaceId, computerId, createdBy: user.id });
  const id = String(row.id);
  await insertRows(database, { browser_sessions: { ...row, status, end_code: null, ended_at: null } });
  return { id, become, next: () => nextBrowserStep(database, id), find: () => findBrowser(database, id), user };
}

test.each([
  ['starting', 'running', 'start'],
  ['running', 'running', 'watch'],
  ['ending', 'running', 'close'],
  ['saving', 'running', 'save'],
  ['saving', 'stopped', 'save'],
  ['ending', 'stopped', 'close'],
  ['starting', 'paused', 'watch'],
  ['saving', 'paused', 'watch'],
  ['ended', 'running', 'rest'],
])('A session that is %s on a computer that is %s: the next step is %s', async (status, computer, step) => {
  const { next } = await setUp(status, { status: computer });
  expect(await next()).toMatchObject({ do: step });
  expect(await next()).toMatchObject({ do: step });
});

test('A session whose computer stops is closed after the computer has stopped', async () => {
  const { become, next, find } = await setUp('running', { status: 'stopping' });
  expect(await next()).toMatchObject({ do: 'watch' });
  expect(await find()).toMatchObject({ status: 'ending', endCode: 'COMPUTER_STOPPED' });
  await become({ status: 'stopped' });
  expect(await next()).toEqual({ do: 'close' });
});

test('A session ends when its computer has started again or its host is lost', async () => {
  const earlier = await setUp('running', { status: 'running', generation: 2 });
  await earlier.next();
  expect(await earlier.find()).toMatchObject({ status: 'ending', endCode: 'COMPUTER_STOPPED' });
  const lost = await setUp('starting', { status: 'error', error_code: 'HOST_LOST' });
  await lost.next();
  expect(await lost.find()).toMatchObject({ status: 'ending', endCode: 'HOST_LOST' });
});
