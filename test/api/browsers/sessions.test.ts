import { type BrowserSession, browsersOf, startSite, type TestBrowsers } from '../../builders/browser.ts';
import { buildComputer, buildHostingProduct, computerOf, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { getBrowserPrograms } from '../../support/browserPrograms.ts';
import { getDesktopPrograms } from '../../support/desktopPrograms.ts';
import { inFull } from '../../support/inFull.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('browsers');

let product: TestProduct;

beforeAll(async () => {
  await getBrowserPrograms();
  await getDesktopPrograms();
  product = await buildHostingProduct({ ...hurriedSweeper });
}, 300_000);
afterAll(() => product?.close());

interface Problem {
  code: string;
  detail: string;
}

/** The number of Chromium processes in the computer. */
async function chromiums(computer: TestComputer): Promise<number> {
  return Number((await computer.exec('pgrep -fc -- "chromium.*--user-data-dir"')).stdout);
}

const signedIn = 'cookie:login=yes storage:me';

describe('a browser session with a profile', () => {
  let computer: TestComputer;
  let browsers: TestBrowsers;
  let site: string;
  let session: BrowserSession;
  beforeAll(async () => {
    computer = await buildComputer(product);
    browsers = browsersOf(computer);
    site = await startSite(computer);
  });

  test('A session wakes its computer and lists its tabs', async () => {
    const profile = await browsers.profile();
    expect(profile).toMatchObject({ computerId: computer.id, savedAt: null, sessions: [] });
    session = await browsers.start(profile, { url: `${site}/` });
    expect(session).toMatchObject({
      profileId: profile.id,
      status: 'running',
      resolution: '1280x800',
      end: null,
      save: { state: 'pending', code: null },
    });
    expect(await browsers.tabs(session)).toMatchObject([
      { url: `${site}/`, title: 'cookie: storage:null', active: true },
    ]);
    const { sessions } = await browsers.expect<{ sessions: BrowserSession[] }>(200, 'GET', `/profiles/${profile.id}`);
    expect(sessions).toMatchObject([{ id: session.id, status: 'running' }]);
  });

  test('A profile in use is refused to others, and the error names the session and the user', async () => {
    const path = `/profiles/${session.profileId}`;
    for (const [method, at] of [
      ['POST', `${path}/sessions`],
      ['DELETE', path],
    ] as const) {
      const problem = await browsers.expect<Problem>(409, method, at);
      expect(problem.code).toBe('PROFILE_IN_USE');
      expect(problem.detail).toContain(session.id);
      expect(problem.detail).toContain(computer.user.id);
    }
  });

  test('The next session is still signed in, after its computer was stopped and woken', async () => {
    await browsers.visit(session, `${site}/sign-in`);
    await browsers.end(session);
    const ended = await browsers.get(session);
    expect(ended).toMatchObject({ status: 'ended', end: { code: 'BROWSER_DELETED' }, save: { state: 'saved' } });
    expect(await chromiums(computer)).toBe(0);
    await computer.expect(200, 'POST', '/stop');
    const next = await browsers.start({ id: String(session.profileId) });
    await startSite(computer);
    expect((await browsers.visit(next, `${site}/`)).title).toBe(signedIn);
    await browsers.end(next);
  });

  test('A session on another computer is signed in with the saved profile', async () => {
    const created = await computer.user.fetch(`/api/spaces/${computer.user.spaceId}/computers`, {
      method: 'POST',
      body: {},
    });
    const other = computerOf(computer.user, ((await created.json()) as { id: string }).id);
    const next = await browsers.start({ id: String(session.profileId) }, { computerId: other.id });
    expect(next.computerId).toBe(other.id);
    expect((await browsers.visit(next, `${await startSite(other)}/`)).title).toBe(signedIn);
    await browsers.end(next);
  });
});

describe('a browser session', () => {
  full.test('A session without a profile leaves nothing but its row', async () => {
    const computer = await buildComputer(product);
    const browsers = browsersOf(computer);
    const site = await startSite(computer);
    const session = await browsers.temporary({ url: `${site}/sign-in`, resolution: '800x600' });
    expect(session).toMatchObject({ profileId: null, resolution: '800x600', save: { state: 'none' } });
    const left = async () => (await computer.exec('ls .local/share/atrium/browsers')).stdout;
    expect(await left()).toContain(session.id);
    await browsers.end(session);
    expect((await browsers.get(session)).save).toEqual({ state: 'none', code: null, savedAt: null });
    await waitFor('the folders of the session to go', async () => (await left()) === '');
  });

  test('A session ends with its Chromium, and its profile opens again', async () => {
    const computer = await buildComputer(product);
    const browsers = browsersOf(computer);
    const site = await startSite(computer);
    const session = await browsers.start(await browsers.profile(), { url: `${site}/sign-in` });
    await computer.exec('pkill -9 -f -- --user-data-dir');
    expect(await browsers.ended(session)).toMatchObject({ end: { code: 'BROWSER_ENDED' }, save: { state: 'saved' } });
    const problem = await browsers.expect<Problem>(410, 'GET', `/sessions/${session.id}/tabs`);
    expect(problem).toMatchObject({ code: 'BROWSER_SESSION_ENDED' });
    const next = await browsers.start({ id: String(session.profileId) });
    expect(next.status).toBe('running');
    await browsers.end(next);
  });

  full.test('A session ends with its computer and saves its profile, and the next session waits for that', async () => {
    const computer = await buildComputer(product);
    const browsers = browsersOf(computer);
    const site = await startSite(computer);
    const session = await browsers.start(await browsers.profile(), { url: `${site}/sign-in` });
    await computer.expect(200, 'POST', '/stop');
    expect((await browsers.get(session)).end).toMatchObject({ code: 'COMPUTER_STOPPED' });
    const next = await browsers.start({ id: String(session.profileId) });
    expect(await browsers.get(session)).toMatchObject({ status: 'ended', save: { state: 'saved' } });
    await startSite(computer);
    expect((await browsers.visit(next, `${site}/`)).title).toBe(signedIn);
    await browsers.end(next);
  });

  test('A session on a desktop is shown there, and ends with the desktop', async () => {
    const computer = await buildComputer(product);
    const browsers = browsersOf(computer);
    const desktop = await computer.expect<{ id: string }>(200, 'POST', '/desktop/sessions', { resolution: '800x600' });
    const session = await browsers.temporary({ desktopSessionId: desktop.id });
    expect(session).toMatchObject({ status: 'running', resolution: '800x600', desktopSessionId: desktop.id });
    await computer.expect(204, 'DELETE', `/desktop/sessions/${desktop.id}`);
    expect((await browsers.ended(session)).end).toMatchObject({ code: 'DESKTOP_ENDED' });
    const problem = await browsers.expect<Problem>(409, 'POST', '/sessions', { desktopSessionId: desktop.id });
    expect(problem.code).toBe('DESKTOP_NOT_RUNNING');
  });

  full.test('The memory of a computer limits its sessions, and ended sessions give theirs back', async () => {
    const computer = await buildComputer(product);
    const browsers = browsersOf(computer);
    await computer.expect(200, 'PATCH', '', { memoryMiB: 1_024 });
    const open = [await browsers.temporary(), await browsers.temporary()];
    const problem = await browsers.expect<Problem>(422, 'POST', '/sessions');
    expect(problem.code).toBe('TOO_MANY_BROWSERS');
    for (const session of open) await browsers.end(session);
    await browsers.end(await browsers.temporary());
    expect(await chromiums(computer)).toBe(0);
  });

  test.each([
    ['disabled', 'UPDATE users SET disabled_at = NOW(3) WHERE id = ?', 'USER_DISABLED'],
    ['viewers now', "UPDATE space_members SET role = 'viewer' WHERE user_id = ?", 'MEMBER_REMOVED'],
    ['removed from the space', 'DELETE FROM space_members WHERE user_id = ?', 'MEMBER_REMOVED'],
  ])('A session ends when the members who started it are %s', async (_name, change, code) => {
    const computer = await buildComputer(product);
    const browsers = browsersOf(computer);
    const session = await browsers.start(await browsers.profile());
    const { pool } = product.environment.database;
    await pool.query(change, [computer.user.id]);
    await waitFor('the end of the session', async () => {
      const [rows] = await pool.query('SELECT status, end_code AS code FROM browser_sessions WHERE id = ?', [
        session.id,
      ]);
      const [row] = rows as { status: string; code: string }[];
      return row?.status === 'ended' && row.code === code;
    });
  });

  full.test('A session whose profile folder cannot be written is refused, and the next one starts', async () => {
    const computer = await buildComputer(product);
    const browsers = browsersOf(computer);
    await computer.exec('mkdir -p .local/share/atrium && touch .local/share/atrium/browsers');
    const problem = await browsers.expect<Problem>(422, 'POST', '/sessions');
    expect(problem.code).toBe('PROFILE_UNUSABLE');
    await computer.exec('rm .local/share/atrium/browsers');
    await browsers.end(await browsers.temporary());
  });

  test('404 for the sessions and profiles of another tenant', async () => {
    const computer = await buildComputer(product);
    const browsers = browsersOf(computer);
    const profile = await browsers.profile();
    const session = await browsers.start(profile);
    const stranger = await buildComputer(product);
    const [outside, elsewhere] = [browsersOf(stranger, computer.user.spaceId), browsersOf(stranger)];
    for (const path of ['', '/tabs', '/tabs/x/screenshot', '/tabs/x/pdf']) {
      await outside.expect(404, 'GET', `/sessions/${session.id}${path}`);
      await elsewhere.expect(404, 'GET', `/sessions/${session.id}${path}`);
    }
    for (const other of [outside, elsewhere]) {
      await other.expect(404, 'DELETE', `/sessions/${session.id}`);
      await other.expect(404, 'POST', `/sessions/${session.id}/tabs`, { url: 'http://127.0.0.1/' });
      await other.expect(404, 'GET', `/profiles/${profile.id}`);
      await other.expect(404, 'POST', `/profiles/${profile.id}/sessions`);
      await other.expect(404, 'DELETE', `/profiles/${profile.id}`);
    }
    // A computer of another space cannot be used either.
    await browsers.expect(404, 'POST', '/sessions', { computerId: stranger.id });
    expect((await browsers.get(session)).status).toBe('running');
    await browsers.end(session);
  });

  test('The same Idempotency-Key starts one session', async () => {
    const computer = await buildComputer(product);
    const browsers = browsersOf(computer);
    const profile = await browsers.profile();
    const once = async () => {
      const headers = { 'idempotency-key': 'browser-1' };
      const response = await browsers.fetch(`/profiles/${profile.id}/sessions`, { method: 'POST', body: {}, headers });
      return [response.status, ((await response.json()) as BrowserSession).id];
    };
    const first = await once();
    expect(first[0]).toBe(201);
    expect(await once()).toEqual(first);
    const { data } = await browsers.expect<{ data: BrowserSession[] }>(200, 'GET', '/sessions');
    expect(data.map(({ id }) => id)).toEqual([first[1]]);
    await browsers.end({ id: String(first[1]) });
    await browsers.end({ id: String(first[1]) });
  });
});
