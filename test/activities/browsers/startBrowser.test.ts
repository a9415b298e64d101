import { MockActivityEnvironment } from '@temporalio/testing';
import { type BrowserDeps, browsers } from '../../../activities/browsers/index.ts';
import { Browser } from '../../../integrations/browsers/browser.ts';
import { findBrowser } from '../../../models/browsers/session.ts';
import { noteStarted } from '../../../models/browsers/steps.ts';
import { browserRow } from '../../builders/browserRows.ts';
import { buildComputerRow } from '../../builders/computerRows.ts';
import { insertRows } from '../../builders/rows.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// The start of a browser session on a computer that is only a row.

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());
afterEach(() => jest.restoreAllMocks());

test.each([
  ['opens the first page', false, 1],
  ['opens no page once another worker has started the session', true, 0],
])('A worker %s', async (_what, isStartedMeanwhile, opened) => {
  const { database } = environment;
  const { id: computerId, spaceId, userId, set } = await buildComputerRow(environment);
  await set({ status: 'running', generation: 1 });
  const row = browserRow({ spaceId, computerId, createdBy: userId });
  const begins = { status: 'starting', was_started: 0, end_code: null, ended_at: null, url: 'http://example.org/' };
  await insertRows(database, { browser_sessions: { ...row, ...begins } });
  const sessionId = String(row.id);
  jest.spyOn(Browser.prototype, 'start').mockImplementation(async () => {
    if (isStartedMeanwhile) await noteStarted(database, sessionId);
  });
  jest.spyOn(Browser.prototype, 'tabs').mockResolvedValue([]);
  const open = jest.spyOn(Browser.prototype, 'openTab').mockResolvedValue({} as never);
  const close = jest.spyOn(Browser.prototype, 'close').mockResolvedValue();
  const deps = {
    ...environment,
    workflows: {},
    liveComputers: { running: async () => ({}) },
  } as unknown as BrowserDeps;
  await new MockActivityEnvironment().run(browsers.create(deps).startBrowser, { sessionId });
  expect(open).toHaveBeenCalledTimes(opened);
  expect(close).not.toHaveBeenCalled();
  expect(await findBrowser(database, sessionId)).toMatchObject({ status: 'running' });
});
