import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';
import { createBrowser } from '../../support/browser.ts';
import { buildSignInProduct, codeOn, post, type SignInProduct } from './support.ts';

// With mail and single sign-on, and without either: the link of an invitation proves different things.

interface Invitation {
  id: string;
  link?: string;
  mailed: boolean;
}

describe('without mail and single sign-on', () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await buildApi({
      ATRIUM_CORS_ORIGINS: 'https://app.example.com',
      ATRIUM_SIGN_IN_REDIRECTS: 'https://app.example.com/signed-in',
    });
  });
  afterAll(() => api.close());

  async function owner() {
    const { user, token } = await buildUser(api.identity, 'owner');
    const { space } = await buildSpace(api.identity, user.id, 'Research <b>');
    const client = api.as(token);
    const path = `/api/spaces/${space.id}/invitations`;
    const invite = async (email: string, role = 'editor') =>
      (await client.post(path, { email, role })).body as Invitation;
    return { user, client, spaceId: space.id, path, invite };
  }

  const pathOf = ({ link }: Invitation) => new URL(link ?? '').pathname;

  test('the answer has the link, which opens an account once', async () => {
    const { client, spaceId, path, invite } = await owner();
    const made = await invite(' Grace@Example.com');
    expect(made).toMatchObject({ email: 'grace@example.com', role: 'editor', mailed: false });
    const accepted = await api.as().post(pathOf(made));
    expect(accepted.status).toBe(200);
    expect(accepted.body).toMatchObject({ spaceId, role: 'editor', code: expect.any(String) });
    const { body } = await api.as().post('/auth/exchange-code', { code: accepted.body.code });
    const me = await api.as(body.sessionToken).get('/api/me');
    expect(me.body).toMatchObject({ email: 'grace@example.com', defaultSpaceId: spaceId });
    expect(me.body.spaces).toMatchObject([{ id: spaceId, role: 'editor' }]);
    const again = await api.as().post(pathOf(made));
    expect([again.status, again.body.code]).toEqual([410, 'INVITATION_USED']);
    expect((await client.get(path)).body.data).toEqual([]);
  });

  test('A new member gets back to the return URL, with the code where the operator allows that', async () => {
    const { client, path } = await owner();
    const join = async (email: string, returnUrl: string) => {
      const made = (await client.post(path, { email, role: 'editor', returnUrl })).body as Invitation;
      return api.as().post(pathOf(made)).set('accept', 'text/html');
    };
    const page = await join('back@example.com', 'https://app.example.com/chat');
    expect([page.status, page.text]).toEqual([
      200,
      expect.stringContaining('<a class="button" href="https://app.example.com/chat">Go on to app.example.com</a>'),
    ]);
    expect(page.text).toMatch(/You are a member of <strong>[^<]+<\/strong> now, as an editor\./);
    // The command on the page works.
    const [, exchange = '', given = ''] =
      /curl (\S+) .*?(\{.*?\})/.exec(page.text.replaceAll('&#39;', "'").replaceAll('&quot;', '"')) ?? [];
    const { body } = await api.as().post(new URL(exchange).pathname, JSON.parse(given));
    expect((await api.as(body.sessionToken).get('/api/me')).body.email).toBe('back@example.com');
    const sent = await join('straight@example.com', 'https://app.example.com/signed-in');
    expect([sent.status, sent.headers.location]).toEqual([
      303,
      expect.stringMatching(/^https:\/\/app\.example\.com\/signed-in\?code=/),
    ]);
    const refused = await client.post(path, { email: 'a@example.com', role: 'editor', returnUrl: '//evil.example' });
    expect([refused.status, refused.body.code]).toEqual([400, 'RETURN_URL_NOT_ALLOWED']);
    // The return URL is kept for a person who has to sign in first.
    const { user } = await buildUser(api.identity);
    const page2 = await join(user.email, 'https://app.example.com/chat');
    expect(page2.status).toBe(403);
    expect(page2.text).toContain('/auth/sign-in?returnUrl=https%3A%2F%2Fapp.example.com%2Fchat');
  });

  test('The list shows no link, and a revoked link no longer works', async () => {
    const { client, path, invite } = await owner();
    const made = await invite('a@example.com');
    const listed = await client.get(path);
    expect(listed.body.data).toMatchObject([{ id: made.id, email: 'a@example.com' }]);
    expect(listed.text).not.toContain('link');
    expect((await client.delete(`${path}/${made.id}`)).status).toBe(204);
    expect((await client.delete(`${path}/${made.id}`)).status).toBe(404);
    expect((await api.as().post(pathOf(made))).status).toBe(404);
  });

  test('A second invitation for the same address replaces the first one', async () => {
    const { client, path, invite } = await owner();
    const [first, second] = [await invite('twice@example.com'), await invite('twice@example.com', 'viewer')];
    expect((await api.as().post(pathOf(first))).status).toBe(404);
    expect((await client.get(path)).body.data).toHaveLength(1);
    expect((await api.as().post(pathOf(second))).body.role).toBe('viewer');
  });

  test('410 for an invitation after seven days', async () => {
    const { invite, client, path } = await owner();
    const made = await invite('late@example.com');
    const { pool } = api.environment.database;
    await pool.query('UPDATE invitations SET expires_at = UTC_TIMESTAMP(3) WHERE id = ?', [made.id]);
    const response = await api.as().post(pathOf(made));
    expect([response.status, response.body.code]).toEqual([410, 'INVITATION_EXPIRED']);
    expect((await client.get(path)).body.data).toEqual([]);
  });

  test('The link of an invitation does not sign in an existing user', async () => {
    const { invite, spaceId } = await owner();
    const [victim, other] = [await buildUser(api.identity, 'victim'), await buildUser(api.identity, 'other')];
    const made = await invite(victim.user.email);
    const stolen = await api.as().post(pathOf(made));
    expect([stolen.status, stolen.body.code]).toEqual([403, 'SIGN_IN_REQUIRED']);
    const wrong = await api.as(other.token).post(pathOf(made));
    expect([wrong.status, wrong.body.code]).toEqual([403, 'INVITATION_FOR_ANOTHER']);
    const broken = await api.as('x.y.z').post(pathOf(made));
    expect(broken.status).toBe(401);
    const right = await api.as(victim.token).post(pathOf(made));
    expect([right.status, right.body]).toEqual([200, { spaceId, role: 'editor' }]);
  });

  test('Of twenty simultaneous visits to one link, one gets in', async () => {
    const { invite, client, spaceId } = await owner();
    const path = pathOf(await invite('race@example.com'));
    const answers = await Promise.all(Array.from({ length: 20 }, () => api.as().post(path)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status >= 500)).toEqual([]);
    expect((await client.get(`/api/spaces/${spaceId}/members`)).body.data).toHaveLength(2);
  });

  test('a person who proves the address later takes over the account', async () => {
    const { invite } = await owner();
    const accepted = await api.as().post(pathOf(await invite('squatted@example.com')));
    const { body } = await api.as().post('/auth/exchange-code', { code: accepted.body.code });
    const squatter = api.as(body.sessionToken);
    const { body: key } = await squatter.post('/api/keys', { name: 'kept' });
    expect((await squatter.get('/api/me')).status).toBe(200);
    const proven = await api.identity.arrivals.arrive({ email: 'squatted@example.com', address: null });
    expect(proven.email).toBe('squatted@example.com');
    expect(await api.identity.keys.isValid(key.id)).toBe(false);
    const sessions = await api.identity.sessions.list(proven.id, { limit: 10 });
    expect(sessions.data).toEqual([]);
    // Now that the address is proven, the next sign-in ends nothing.
    const token = await api.identity.sessions.create(proven.id);
    await api.identity.arrivals.arrive({ email: 'squatted@example.com', address: null });
    expect((await api.as(token).get('/api/me')).status).toBe(200);
  });

  test.each([
    [{ email: 'x', role: 'editor' }, 400],
    [{ email: 'not an address', role: 'editor' }, 422],
    [{ email: 'a@example.com', role: 'admin' }, 400],
    [{ email: 'a@example.com' }, 400],
    [{ email: 'a@example.com', role: 'viewer', acceptedBy: 'usr_1' }, 400],
  ])('%j is refused', async (body, status) => {
    const { client, path } = await owner();
    expect((await client.post(path, body)).status).toBe(status);
  });

  test('409 for inviting a member, and 422 for more than 200 invitations', async () => {
    const { client, path, user, spaceId } = await owner();
    const member = await client.post(path, { email: user.email, role: 'viewer' });
    expect([member.status, member.body.code]).toEqual([409, 'ALREADY_MEMBER']);
    const rows = Array.from({ length: 200 }, (_, i) => [
      `inv_${spaceId.slice(-20)}${i}`,
      Buffer.from(`${spaceId}${i}`.slice(-32).padStart(32, 'x')),
      spaceId,
      `p${i}@example.com`,
      'viewer',
      0,
      user.id,
      new Date(),
      new Date(Date.now() + 60_000),
    ]);
    await api.environment.database.pool.query(
      'INSERT INTO invitations (id, token_hash, space_id, email, role, was_mailed, created_by, created_at, expires_at) VALUES ?',
      [rows],
    );
    const full = await client.post(path, { email: 'one.more@example.com', role: 'viewer' });
    expect([full.status, full.body.code]).toEqual([422, 'TOO_MANY_INVITATIONS']);
    const first = await client.get(`${path}?limit=150`);
    const second = await client.get(`${path}?limit=150&cursor=${first.body.nextCursor}`);
    expect([first.body.data.length, second.body.data.length, second.body.nextCursor]).toEqual([150, 50, null]);
  });

  test('The page of an invitation escapes what people have written', async () => {
    const { invite } = await owner();
    const made = await invite('page@example.com');
    const page = await api.as().get(pathOf(made)).set('accept', 'text/html');
    expect(page.status).toBe(200);
    expect(page.text).toContain('Research &lt;b&gt;');
    expect(page.text).not.toContain('Research <b>');
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    const absent = await api.as().get('/auth/invitations/absent').set('accept', 'text/html');
    expect([absent.status, absent.type]).toEqual([404, 'text/html']);
  });

  describe('Invitations to one’s own address', () => {
    const own = async (token: string) => (await api.as(token).get('/api/invitations')).body;

    test('Only the invited user can list, accept and decline an invitation, each once', async () => {
      const [first, second] = [await owner(), await owner()];
      const [guest, other] = [await buildUser(api.identity, 'guest'), await buildUser(api.identity, 'other')];
      const [joining, declining] = [
        await first.invite(guest.user.email),
        await second.invite(guest.user.email, 'owner'),
      ];
      const inviter = first.user.name;
      expect((await own(guest.token)).data).toMatchObject([
        { id: declining.id, spaceId: second.spaceId, role: 'owner' },
        { id: joining.id, spaceId: first.spaceId, spaceName: 'Research <b>', inviter, role: 'editor' },
      ]);
      expect(await own(other.token)).toEqual({ data: [], nextCursor: null });
      for (const what of ['accept', 'decline']) {
        expect((await api.as(other.token).post(`/api/invitations/${joining.id}/${what}`)).status).toBe(404);
      }
      expect((await api.as(guest.token).get(`/api/spaces/${first.spaceId}`)).status).toBe(404);
      const accepted = await api.as(guest.token).post(`/api/invitations/${joining.id}/accept`);
      expect([accepted.status, accepted.body]).toEqual([200, { spaceId: first.spaceId, role: 'editor' }]);
      expect((await api.as(guest.token).get(`/api/spaces/${first.spaceId}`)).body.role).toBe('editor');
      expect((await api.as(guest.token).post(`/api/invitations/${declining.id}/decline`)).status).toBe(204);
      expect((await own(guest.token)).data).toEqual([]);
      expect((await second.client.get(second.path)).body.data).toEqual([]);
      for (const { id } of [joining, declining]) {
        expect((await api.as(guest.token).post(`/api/invitations/${id}/accept`)).status).toBe(404);
      }
      expect((await api.as(guest.token).get(`/api/spaces/${second.spaceId}`)).status).toBe(404);
    });

    test('Invitations come in pages, without those that are expired, revoked, or of a deleted space', async () => {
      const guest = await buildUser(api.identity, 'guest');
      const inviters = [];
      for (let index = 0; index < 5; index++) inviters.push(await owner());
      const made: Invitation[] = [];
      for (const { invite } of inviters) made.push(await invite(guest.user.email));
      const [late, revoked, gone, ...open] = made;
      const { pool } = api.environment.database;
      await pool.query('UPDATE invitations SET expires_at = UTC_TIMESTAMP(3) WHERE id = ?', [late?.id]);
      await inviters[1]?.client.delete(`${inviters[1].path}/${revoked?.id}`);
      await inviters[2]?.client.delete(`/api/spaces/${inviters[2].spaceId}`);
      const client = api.as(guest.token);
      const first = (await client.get('/api/invitations?limit=1')).body;
      const rest = (await client.get(`/api/invitations?limit=1&cursor=${first.nextCursor}`)).body;
      const ids = [...first.data, ...rest.data].map(({ id }: Invitation) => id);
      expect([ids, rest.nextCursor]).toEqual([open.map(({ id }) => id).toReversed(), null]);
      for (const invitation of [late, revoked, gone]) {
        expect((await client.post(`/api/invitations/${invitation?.id}/accept`)).status).toBe(404);
      }
    });

    test('A user who has not proven the address sees no invitations, and a key accepts none', async () => {
      const [first, second] = [await owner(), await owner()];
      const accepted = await api.as().post(pathOf(await first.invite('unproven@example.com')));
      const { body } = await api.as().post('/auth/exchange-code', { code: accepted.body.code });
      const { id } = await second.invite('unproven@example.com');
      expect((await own(body.sessionToken)).data).toEqual([]);
      expect((await api.as(body.sessionToken).post(`/api/invitations/${id}/accept`)).status).toBe(404);
      const guest = await buildUser(api.identity, 'guest');
      const invited = await first.invite(guest.user.email);
      const { key } = await api.identity.keys.create(guest.user.id, { name: 'all', scopes: ['*'] });
      const refused = await api.as(key).post(`/api/invitations/${invited.id}/accept`);
      expect([refused.status, refused.body.code]).toEqual([403, 'SESSION_REQUIRED']);
    });
  });

  test('The invitation of a deleted space is gone', async () => {
    const { invite, client, spaceId } = await owner();
    const made = await invite('gone@example.com');
    await client.delete(`/api/spaces/${spaceId}`);
    expect((await api.as().post(pathOf(made))).status).toBe(404);
  });
});

describe('with mail and single sign-on', () => {
  let product: SignInProduct;

  beforeAll(async () => {
    product = await buildSignInProduct();
  });
  afterAll(() => product.close());

  test('The link is only mailed to the address, and following it proves the address', async () => {
    const owner = await product.user('owner');
    const made = await post(
      `${product.publicUrl}/api/spaces/${owner.spaceId}/invitations`,
      { email: 'm@example.com', role: 'editor' },
      owner.token,
    );
    expect(await made.json()).toMatchObject({ mailed: true });
    const link = await product.mailServer.linkFor('m@example.com');
    const browser = createBrowser();
    expect((await browser.visit(link)).text).toContain('m@example.com');
    const me = await product.meOf(codeOn(await browser.visit(link, {})));
    expect(me.spaces).toMatchObject([{ id: owner.spaceId, role: 'editor' }]);
    const mail = product.mailServer.mails.find(({ to }) => to.includes('m@example.com'));
    expect(mail?.text).toMatch(/^Message-ID: <mai_\w+@example\.com>$/im);
  });

  test('Signing in requires an invitation, but does not accept it', async () => {
    const owner = await product.user('owner');
    const body = { email: 'sso@example.com', role: 'viewer' };
    const made = await post(`${product.publicUrl}/api/spaces/${owner.spaceId}/invitations`, body, owner.token);
    expect(made.status).toBe(201);
    product.issuer.person = { subject: 'other', email: 'other@example.com', emailVerified: true };
    expect((await product.viaIssuer()).status).toBe(403);
    product.issuer.person = { subject: 'sso', email: 'SSO@example.com', emailVerified: true, name: 'Sso' };
    const me = await product.meOf(codeOn(await product.viaIssuer()));
    expect(me).toMatchObject({ email: 'sso@example.com', name: 'Sso', spaces: [{ role: 'owner' }] });
    expect(me.spaces.map(({ id }) => id)).not.toContain(owner.spaceId);
  });
});
