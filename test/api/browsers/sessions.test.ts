import { type BrowserSession, browsersOf, startSite, type TestBrowsers } from '../../builders/browser.ts';
import { buildComputer, buildHostingProduct, computerOf, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { getBrowserPrograms } from '../../support/browserPrograms.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';

let product: TestProduct;

beforeAll(async () => {
  await getBrowserPrograms();
  product = await buildHostingProduct({ ...hurriedSweeper });
}, 300_000);
afterAll(() => product?.close());

interface Problem {
  code: string;
  detail: string;
}

/** What runs in the computer with this in its command. */
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
  }, 60_000);

  test('is started on a computer that is woken for it, and tells the tabs', async () => {
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

  test('keeps its profile for itself, and says who has it', async () => {
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

  test('is signed in still in the next session, after a stop and a wake of its computer', async () => {
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

  test('is signed in on another computer, with what was saved', async () => {
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
