import { purgeGitConnections } from '../../../models/git/connections.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { choose, connect, type HostingSpace, hostingSpace, visit } from '../../builders/hosting.ts';
import { buildUser } from '../../builders/identity.ts';
import { type FakeGitHub, startFakeGitHub } from '../../fakes/githubServer.ts';

let github: FakeGitHub;
let api: TestApi;

beforeAll(async () => {
  github = await startFakeGitHub();
  api = await buildApi(github.environment);
});
afterAll(async () => {
  await api.close();
  await github.stop();
});
beforeEach(() => {
  Object.assign(github, { skewMs: 0, pageSize: 100, descriptionLength: 0 });
});

interface Synced {
  synced: number;
  credentials: { id: string; name: string }[];
}

async function sync({ as, space }: HostingSpace, name = 'hosting') {
  const response = await as.post(`${space}/git/${name}/sync-installations`);
  return { status: response.status, body: response.body as Synced, code: (response.body as { code?: string }).code };
}

async function credentials({ as, space }: HostingSpace) {
  const { data } = (await as.get(`${space}/git/credentials`)).body as { data: Record<string, unknown>[] };
  return data;
}

/** An installation on a personal account, and the person of that account. */
function ownInstallation(login: string, repositories?: string[]) {
  const installation = github.install(login, repositories);
  return { installation, person: github.person(login, installation.account.id) };
}

test('An installation that its person has chosen becomes a credential, which each sync returns', async () => {
  const at = await hostingSpace(api);
  const { installation, person } = ownInstallation('ada');
  expect((await sync(at)).body).toEqual({ synced: 0, credentials: [] });
  const page = await visit(api, github, at, person);
  expect([page.status, page.text]).toEqual([200, expect.stringContaining('Connect ada')]);
  expect(page.text).toContain('At GitHub you are <strong>ada</strong>');
  // Coming back from GitHub alone connects nothing.
  expect((await sync(at)).body.synced).toBe(0);
  const chosen = await choose(api, page, installation.id);
  expect([chosen.status, chosen.text]).toEqual([200, expect.stringContaining('ada is connected')]);

  const synced = await sync(at);
  expect(synced).toMatchObject({ status: 200, body: { synced: 1, credentials: [{ name: 'GitHub ada' }] } });
  expect((await sync(at, 'github')).body).toEqual(synced.body);
  expect(await credentials(at)).toEqual([
    expect.objectContaining({
      ...{ id: synced.body.credentials[0]?.id, provider: 'github', status: 'active' },
      ...{ pathPrefix: '/ada', username: 'x-access-token' },
    }),
  ]);
  const { data } = (await at.as.get(`${at.space}/audit`)).body as { data: object[] };
  expect(data).toContainEqual(
    expect.objectContaining({
      ...{ action: 'git-installation.connected', target: `github/${installation.id}`, userId: at.userId },
    }),
  );
});

test('The person’s own token is given back to GitHub, and is nowhere in the database', async () => {
  const at = await hostingSpace(api);
  const { installation, person } = ownInstallation('brief');
  await connect(api, github, at, person, installation.id);
  expect([...github.userTokens]).toEqual([]);
  const shown = github.requests.flatMap(({ authorization }) => /token (ghu_\S+)/.exec(authorization)?.[1] ?? []);
  expect(shown.length).toBeGreaterThan(0);
  for (const table of ['git_installations', 'git_installation_repositories', 'git_connections', 'git_credentials']) {
    const [rows] = await api.environment.database.pool.query(`SELECT * FROM ${table}`);
    const text = (rows as object[]).map((row) => Object.values(row).map(String).join()).join();
    expect(shown.filter((token) => text.includes(token))).toEqual([]);
  }
});

test('A sync gives only the installations of its own space, although the App sees those of all customers', async () => {
  const [mine, other] = [await hostingSpace(api), await hostingSpace(api)];
  const { installation, person } = ownInstallation('carol');
  const stranger = ownInstallation('dave');
  await connect(api, github, mine, person, installation.id);
  expect((await sync(mine)).body.synced).toBe(1);
  expect((await sync(other)).body).toEqual({ synced: 0, credentials: [] });

  // A stranger's installation cannot be had by its id: neither on one's own page, nor with a guessed token.
  const page = await visit(api, github, other, stranger.person);
  const forged = await choose(api, page, installation.id);
  expect([forged.status, forged.text]).toEqual([404, expect.stringContaining('no such installation')]);
  expect((await choose(api, { text: 'name="token" value="guessed"' }, installation.id)).status).toBe(410);
  const asked = github.requests.length;
  expect((await sync(other)).body.synced).toBe(0);
  expect(github.requests.slice(asked)).toEqual([]);
});

test('A person who reads repositories of an organisation connects only those, and not the organisation', async () => {
  const at = await hostingSpace(api);
  const installation = github.install('acme', ['open', 'secret', 'writable']);
  const [open, secret, writable] = installation.repositories;
  const person = github.person('erin');
  person.repositories.set(open?.id ?? 0, false).set(writable?.id ?? 0, true);
  const page = await connect(api, github, at, person, installation.id);
  expect(page.text).toContain('The 2 repositories that you may see, 1 to be changed too');
  const [rows] = await api.environment.database.pool.query(
    'SELECT path, repository_id AS id, may_write AS mayWrite FROM git_installation_repositories WHERE space_id = ? ORDER BY path',
    [at.spaceId],
  );
  expect(rows).toEqual([
    { path: 'acme/open', id: String(open?.id), mayWrite: 0 },
    { path: 'acme/writable', id: String(writable?.id), mayWrite: 1 },
  ]);
  expect(JSON.stringify(rows)).not.toContain(String(secret?.id));

  // Connecting again brings what the person may see by then.
  person.repositories.delete(writable?.id ?? 0);
  await connect(api, github, at, person, installation.id);
  const [after] = await api.environment.database.pool.query(
    'SELECT path FROM git_installation_repositories WHERE space_id = ?',
    [at.spaceId],
  );
  expect(after).toEqual([{ path: 'acme/open' }]);
});

test('All pages of what a person has are read', async () => {
  github.pageSize = 2;
  const at = await hostingSpace(api);
  const person = github.person('frank');
  const many = Array.from({ length: 5 }, (_, index) => github.install(`org-${index}`, ['a', 'b', 'c', 'd', 'e']));
  for (const { repositories } of many) for (const { id } of repositories) person.repositories.set(id, true);
  const page = await visit(api, github, at, person);
  for (const { account } of many) expect(page.text).toContain(`Connect ${account.login}`);
  expect(page.text.match(/The 5 repositories/g)).toHaveLength(5);
});

test('Suspended, renamed and removed installations are marked, and one that is active again comes back', async () => {
  const at = await hostingSpace(api);
  const { installation, person } = ownInstallation('gwen');
  await connect(api, github, at, person, installation.id);
  const states = async () => (await credentials(at)).map(({ status, name, pathPrefix }) => [status, name, pathPrefix]);
  const [first] = await credentials(at);

  installation.isSuspended = true;
  expect((await sync(at)).body).toEqual({ synced: 0, credentials: [] });
  expect(await states()).toEqual([['suspended', 'GitHub gwen', '/gwen']]);
  // A suspended installation is not offered either.
  const page = await visit(api, github, at, person);
  expect(page.text).toContain('gwen: suspended at GitHub');
  expect((await choose(api, { text: 'name="token" value="none"' }, installation.id)).status).toBe(410);

  installation.isSuspended = false;
  installation.account.login = 'gwendolen';
  expect((await sync(at)).body.credentials).toEqual([{ id: first?.id, name: 'GitHub gwendolen' }]);
  expect(await states()).toEqual([['active', 'GitHub gwendolen', '/gwendolen']]);

  github.installations.delete(installation.id);
  expect((await sync(at)).body.synced).toBe(0);
  expect(await states()).toEqual([['removed', 'GitHub gwendolen', '/gwendolen']]);
});

test('An installation that belongs to another account now counts as removed', async () => {
  const at = await hostingSpace(api);
  const { installation, person } = ownInstallation('heidi');
  await connect(api, github, at, person, installation.id);
  installation.account = { id: 1, login: 'mallory' };
  expect((await sync(at)).body.synced).toBe(0);
  expect(await credentials(at)).toEqual([expect.objectContaining({ status: 'removed', name: 'GitHub heidi' })]);
});

test('Repeated and simultaneous choices make one credential', async () => {
  const at = await hostingSpace(api);
  const { installation, person } = ownInstallation('ivan');
  const page = await visit(api, github, at, person);
  const answers = await Promise.all([1, 2, 3].map(() => choose(api, page, installation.id)));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  const synced = await Promise.all([sync(at), sync(at), sync(at, 'github')]);
  expect(new Set(synced.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  expect(await credentials(at)).toHaveLength(1);
});

test('An installation that ends while its person chooses is not connected', async () => {
  const at = await hostingSpace(api);
  const { installation, person } = ownInstallation('hank');
  const pages = [await visit(api, github, at, person), await visit(api, github, at, person)] as const;
  installation.isSuspended = true;
  expect((await choose(api, pages[0], installation.id)).status).toBe(404);
  github.installations.delete(installation.id);
  expect((await choose(api, pages[1], installation.id)).status).toBe(404);
  for (const [failure, said] of [
    [401, 502],
    [500, 503],
    [429, 429],
  ] as const) {
    github.failNext({ status: failure });
    expect((await choose(api, pages[1], installation.id)).status).toBe(said);
  }
  expect(await credentials(at)).toEqual([]);
});

test('An enterprise is not confused with the user who has the same number', async () => {
  const at = await hostingSpace(api);
  const enterprise = Object.assign(github.install('megacorp', ['secret', 'open']), { isEnterprise: true });
  const person = github.person('max');
  enterprise.account.id = person.id;
  const page = await visit(api, github, at, person);
  expect(page.text).not.toContain('All repositories that the App may see');
});

test('At most 5,000 repositories are kept, and the page says that there is more', async () => {
  const at = await hostingSpace(api);
  const person = github.person('nora');
  // Each name is as long as GitHub allows, and each page is larger than a megabyte.
  github.descriptionLength = 12_000;
  const names = Array.from({ length: 2_600 }, (_, index) => `${index}`.padEnd(100, 'n'));
  const many = ['first', 'second'].map((login) => github.install(login.padEnd(39, 'o'), names));
  for (const { repositories } of many) for (const { id } of repositories) person.repositories.set(id, true);
  const page = await visit(api, github, at, person);
  expect([page.status, page.text]).toEqual([200, expect.stringContaining('The 2400 repositories')]);
  expect(page.text).toContain('The 2600 repositories');
  expect(page.text).toContain('more installations or repositories than can be shown here');
  for (const { id } of many) expect((await choose(api, page, id)).status).toBe(200);
  const [rows] = await api.environment.database.pool.query(
    'SELECT COUNT(*) AS count FROM git_installation_repositories WHERE space_id = ?',
    [at.spaceId],
  );
  expect(rows).toEqual([{ count: 5_000 }]);
});

test('The page has no link to the App when GitHub does not answer about the App', async () => {
  const at = await hostingSpace(api);
  const { person } = ownInstallation('otto');
  const { url } = (await at.as.get(`${at.space}/git/github/connect`)).body as { url: string };
  const back = new URL(github.authorize(url, person));
  const ok = await api
    .as()
    .get(back.pathname + back.search)
    .set('accept', 'text/html');
  expect(ok.text).toContain('Install the App for another account');
  github.failAbout = true;
  const page = await visit(api, github, at, person);
  github.failAbout = false;
  expect([page.status, page.text]).toEqual([200, expect.stringContaining('Connect otto')]);
  expect(page.text).not.toContain('Install the App for another account');
});

test('A sync does not bring back a credential that was removed', async () => {
  const at = await hostingSpace(api);
  const { installation, person } = ownInstallation('judy');
  await connect(api, github, at, person, installation.id);
  const [credential] = await credentials(at);
  expect((await at.as.delete(`${at.space}/git/credentials/${credential?.id}`)).status).toBe(204);
  expect((await sync(at)).body).toEqual({ synced: 0, credentials: [] });
  await connect(api, github, at, person, installation.id);
  expect((await sync(at)).body.synced).toBe(1);
});

test('A connection works once, for a limited time, and only with GitHub’s own code', async () => {
  const at = await hostingSpace(api);
  const { person, installation } = ownInstallation('kim');
  const begin = async () => {
    const { url } = (await at.as.get(`${at.space}/git/github/connect`)).body as { url: string };
    return new URL(github.authorize(url, person));
  };
  const back = await begin();
  const open = (path: string) => api.as().get(path).set('accept', 'text/html');
  expect((await open(back.pathname + back.search)).status).toBe(200);
  const again = await open(back.pathname + back.search);
  expect([again.status, again.text]).toEqual([410, expect.stringContaining('Start again')]);

  const refused = await begin();
  expect(
    (await open(`${refused.pathname}?error=access_denied&state=${refused.searchParams.get('state')}`)).status,
  ).toBe(403);
  const invented = await begin();
  expect((await open(`${invented.pathname}?code=0&state=${invented.searchParams.get('state')}`)).status).toBe(403);

  const page = await visit(api, github, at, person);
  const later = new Date(Date.now() + 11 * 60_000);
  expect(await purgeGitConnections(api.environment.database, later, () => undefined)).toBeGreaterThan(0);
  expect((await choose(api, page, installation.id)).status).toBe(410);
});

test('Only an editor can connect and sync, and a former editor cannot finish a connection', async () => {
  const at = await hostingSpace(api);
  const { user, token } = await buildUser(api.identity);
  await api.identity.members.add(at.spaceId, user.email, 'viewer');
  const viewer = { ...at, as: api.as(token) };
  expect((await sync(viewer)).code).toBe('ROLE_TOO_LOW');
  expect((await viewer.as.get(`${at.space}/git/github/connect`)).status).toBe(403);
  const stranger = await hostingSpace(api);
  expect((await sync({ ...at, as: stranger.as })).status).toBe(404);

  const { user: former, token: formerToken } = await buildUser(api.identity);
  await api.identity.members.add(at.spaceId, former.email, 'editor');
  const { person, installation } = ownInstallation('leo');
  const page = await visit(api, github, { ...at, as: api.as(formerToken) }, person);
  expect(page.status).toBe(200);
  await api.identity.members.remove(at.spaceId, former.id, { userId: null, credentialId: null, address: null });
  api.identity.members.forget(at.spaceId, former.id);
  expect((await choose(api, page, installation.id)).status).toBe(404);
  expect((await sync(at)).body.synced).toBe(0);
});

test('403 for a form that another site sends', async () => {
  const at = await hostingSpace(api);
  const { person, installation } = ownInstallation('mia');
  const page = await visit(api, github, at, person);
  const foreign = await choose(api, page, installation.id).set('origin', 'https://evil.example');
  expect([foreign.status, (await sync(at)).body.synced]).toEqual([403, 0]);
});

test.each([
  [{ status: 401 }, 502, 'GIT_HOSTING_KEY_REFUSED'],
  [{ status: 403 }, 502, 'GIT_HOSTING_REFUSED'],
  [{ status: 422 }, 422, 'GIT_HOSTING_NOT_FOUND'],
  [{ status: 429, headers: { 'retry-after': '17' } }, 429, 'GIT_HOSTING_BUSY'],
  [{ status: 403, headers: { 'retry-after': '17' } }, 429, 'GIT_HOSTING_BUSY'],
  [{ status: 500 }, 503, 'GIT_HOSTING_UNAVAILABLE'],
  [{ status: 200, body: { id: 1 } }, 503, 'GIT_HOSTING_UNAVAILABLE'],
  [{ status: 302, headers: { location: 'http://127.0.0.1:9/' } }, 503, 'GIT_HOSTING_UNAVAILABLE'],
])('The answer %j of GitHub is reported, and changes nothing', async (failure, status, code) => {
  const at = await hostingSpace(api);
  const { installation, person } = ownInstallation('nina');
  await connect(api, github, at, person, installation.id);
  const before = await credentials(at);
  github.failNext({ body: { message: 'its own words' }, ...failure });
  const response = await at.as.post(`${at.space}/git/hosting/sync-installations`);
  expect([response.status, (response.body as { code: string }).code]).toEqual([status, code]);
  expect(JSON.stringify(response.body)).not.toContain('its own words');
  if (status === 429) expect(response.headers['retry-after']).toBe('17');
  expect(await credentials(at)).toEqual(before);
  expect((await sync(at)).body.synced).toBe(1);
});

test.each([-15 * 60_000, 15 * 60_000])('a clock that is %d ms off GitHub’s does not matter', async (skewMs) => {
  const at = await hostingSpace(api);
  const { installation, person } = ownInstallation('olga');
  await connect(api, github, at, person, installation.id);
  github.skewMs = skewMs;
  expect((await sync(at)).body.synced).toBe(1);
});

test('Each missing setting is named', async () => {
  const { ATRIUM_GITHUB_PRIVATE_KEY, ATRIUM_GITHUB_ADDRESS } = github.environment as Record<string, string>;
  const half = await buildApi({ ATRIUM_GITHUB_PRIVATE_KEY, ATRIUM_GITHUB_ADDRESS });
  try {
    const at = await hostingSpace(half);
    const response = await at.as.post(`${at.space}/git/github/sync-installations`);
    expect([response.status, response.body]).toEqual([
      422,
      expect.objectContaining({
        code: 'GIT_HOSTING_NOT_CONFIGURED',
        detail: expect.stringMatching(/not set ATRIUM_GITHUB_APP_ID, without/),
      }),
    ]);
    const people = (await at.as.get(`${at.space}/git/github/connect`)).body as { detail: string };
    expect(people.detail).toContain('ATRIUM_GITHUB_APP_ID, ATRIUM_GITHUB_CLIENT_ID, ATRIUM_GITHUB_CLIENT_SECRET');
  } finally {
    await half.close();
  }
});
