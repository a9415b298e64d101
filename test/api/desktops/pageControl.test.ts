import { desktopChanges } from '../../../api/desktops/look.ts';
import { PageControl } from '../../../api/desktops/view/pageControl.ts';
import { newId } from '../../../base/ids.ts';
import { controllerOf } from '../../../models/desktops/control.ts';
import { desktopRow } from '../../builders/desktop.ts';
import { insertRows } from '../../builders/rows.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;

beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

const order = (type: string) => Buffer.from(JSON.stringify({ type }));

/** A running session, the number of times that its pages were told to look, and a function that makes a page. */
async function buildSession() {
  const { database } = environment;
  const of = { spaceId: newId('space'), computerId: newId('computer'), createdBy: newId('user') };
  const sessionId = newId('desktopSession');
  const row = { ...desktopRow(of), id: sessionId, status: 'running', end_code: null, ended_at: null };
  await insertRows(database, { desktop_sessions: row });
  const changes = { count: 0 };
  desktopChanges.on(sessionId, () => void changes.count++);
  const page = (mayControl: boolean) => new PageControl({ database, sessionId, mayControl });
  return { changes, page, controller: () => controllerOf(database, sessionId) };
}

test('A page with a read-only link can neither take nor release control', async () => {
  const { changes, page, controller } = await buildSession();
  const looking = page(false);
  for (let n = 0; n < 100; n++) void looking.order(order(n % 2 === 0 ? 'release' : 'take'));
  await looking.order(order('release'));
  await looking.take({ isTakeover: true });
  expect([changes.count, looking.isHeld, await controller()]).toEqual([0, false, undefined]);
});

test('A page without control cannot release the control of another page', async () => {
  const { changes, page, controller } = await buildSession();
  const [one, other] = [page(true), page(true)];
  await one.take({ isTakeover: false });
  await other.take({ isTakeover: false });
  await other.order(order('release'));
  expect([changes.count, one.isHeld, other.isHeld]).toEqual([1, true, false]);
  expect(await controller()).toBeDefined();
});

test('Orders are carried out one after the other', async () => {
  const { changes, page, controller } = await buildSession();
  const one = page(true);
  void one.order(order('take'));
  await one.order(order('release'));
  expect([changes.count, one.isHeld, await controller()]).toEqual([2, false, undefined]);
});

test('A page that sends a flood of orders gets only a few of them carried out', async () => {
  const { changes, page } = await buildSession();
  const one = page(true);
  for (let n = 0; n < 500; n++) void one.order(order(n % 2 === 0 ? 'take' : 'release'));
  await one.order(order('take'));
  expect(changes.count).toBeGreaterThan(0);
  expect(changes.count).toBeLessThan(50);
});

test.each(['', 'null', '7', '{', '{"type":"own"}'])('The invalid order %j changes nothing', async (text) => {
  const { changes, page } = await buildSession();
  const one = page(true);
  await one.order(Buffer.from(text));
  await one.order(order('take'));
  expect([changes.count, one.isHeld]).toEqual([1, true]);
});
