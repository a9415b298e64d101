import request from 'supertest';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildUser } from '../../builders/identity.ts';
import { aSecondLater } from '../../support/clock.ts';

let api: TestApi;

beforeAll(async () => {
  api = await buildApi();
});
afterAll(() => api.close());

const exchange = (code: unknown, target = api) => target.as().post('/auth/exchange-code', { code } as object);

describe('POST /auth/exchange-code', () => {
  test('A code gives a session token, once', async () => {
    const { user } = await buildUser(api.identity);
    const { code } = await api.identity.codes.create(user.id);
    const first = await exchange(code);
    expect([first.status, Object.keys(first.body)]).toEqual([200, ['sessionToken']]);
    expect((await api.as(first.body.sessionToken).get('/api/me')).body.id).toBe(user.id);
    const second = await exchange(code);
    expect([second.status, second.body.code]).toEqual([401, 'INVALID_CODE']);
  });

  test('A bearer token that comes with a code is ignored', async () => {
    const [caller, owner] = [await buildUser(api.identity), await buildUser(api.identity)];
    for (const credential of [caller.token, 'nonsense', 'atr_nonsense']) {
      const { code } = await api.identity.codes.create(owner.user.id);
      const response = await api.as(credential).post('/auth/exchange-code', { code });
      expect(response.status).toBe(200);
      expect((await api.as(response.body.sessionToken).get('/api/me')).body.id).toBe(owner.user.id);
    }
  });

  test('A code is accepted as people type it', async () => {
    const { user } = await buildUser(api.identity);
    for (const typed of [
      (code: string) => code.toLowerCase(),
      (code: string) => ` ${code.replaceAll('-', ' ')} `,
      (code: string) => code.replaceAll('-', '').replaceAll('0', 'O').replaceAll('1', 'l'),
    ]) {
      const { code } = await api.identity.codes.create(user.id);
      expect((await exchange(typed(code))).status).toBe(200);
    }
  });

  test('Of twenty simultaneous exchanges of one code, one succeeds', async () => {
    const { user } = await buildUser(api.identity);
    const { code } = await api.identity.codes.create(user.id);
    // Through the model, since the API limits the attempts from one address.
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => api.identity.codes.exchange(code)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const sessions = await api.identity.sessions.list(user.id, { limit: 50 });
    expect(sessions.data).toHaveLength(2);
  });

  test('A code that is older than a minute is refused', async () => {
    const { user } = await buildUser(api.identity);
    const { code } = await api.identity.codes.create(user.id);
    await api.environment.database.pool.query('UPDATE auth_codes SET expires_at = UTC_TIMESTAMP(3) WHERE user_id = ?', [
      user.id,
    ]);
    expect((await exchange(code)).status).toBe(401);
  });

  test('A disabled user is refused', async () => {
    const { user, token } = await buildUser(api.identity);
    const { code } = await api.identity.codes.create(user.id);
    await api.environment.database.pool.query('UPDATE users SET disabled_at = UTC_TIMESTAMP(3) WHERE id = ?', [
      user.id,
    ]);
    expect((await exchange(code)).status).toBe(401);
    expect((await api.as(token).get('/api/me')).status).toBe(401);
  });

  test('A code cannot be read from the database', async () => {
    const { user } = await buildUser(api.identity);
    const { code } = await api.identity.codes.create(user.id);
    const [rows] = await api.environment.database.pool.query('SELECT * FROM auth_codes WHERE user_id = ?', [user.id]);
    expect(JSON.stringify(rows)).not.toContain(code.slice(0, 4));
  });

  test.each([
    ['no code', {}],
    ['a number', { code: 7 }],
    ['an empty one', { code: '' }],
    ['an endless one', { code: 'x'.repeat(201) }],
    ['more than a code', { code: 'x', userId: 'usr_1' }],
  ])('400 for %s', async (_what, body) => {
    expect((await api.as().post('/auth/exchange-code', body)).status).toBe(400);
  });
});

describe('POST /auth/codes', () => {
  test('A user gets a code for another device', async () => {
    const { user, token } = await buildUser(api.identity);
    const made = await api.as(token).post('/auth/codes');
    expect(made.status).toBe(201);
    expect(made.body.code).toMatch(/^([0-9A-HJKMNP-TV-Z]{4}-){3}[0-9A-HJKMNP-TV-Z]{4}$/);
    const secondsLeft = (Date.parse(made.body.expiresAt) - Date.now()) / 1_000;
    expect(secondsLeft).toBeGreaterThan(55);
    expect(secondsLeft).toBeLessThanOrEqual(60);
    const { body } = await exchange(made.body.code);
    expect((await api.as(body.sessionToken).get('/api/me')).body.id).toBe(user.id);
  });

  test('403 for an API key, since a narrow key would become a whole session', async () => {
    const { user } = await buildUser(api.identity);
    const { key } = await api.identity.keys.create(user.id, { name: 'all', scopes: ['*'] });
    const response = await api.as(key).post('/auth/codes');
    expect([response.status, response.body.code]).toEqual([403, 'SESSION_REQUIRED']);
  });
});

describe('POST /auth/logout', () => {
  test('A logout ends its session at once, and no other', async () => {
    const { user, token } = await buildUser(api.identity);
    const other = await api.identity.sessions.create(user.id);
    expect((await api.as(token).get('/api/me')).status).toBe(200);
    expect((await api.as(token).post('/auth/logout')).status).toBe(204);
    expect((await api.as(token).get('/api/me')).status).toBe(401);
    expect((await api.as(token).post('/auth/logout')).status).toBe(401);
    expect((await api.as(other).get('/api/me')).status).toBe(200);
  });
});

describe('sessions', () => {
  test('Sessions are listed newest first, with the client that signed in', async () => {
    const { user, token } = await buildUser(api.identity);
    const { code } = await api.identity.codes.create(user.id);
    await request(api.app)
      .post('/auth/exchange-code')
      .set('user-agent', `Phone/1 ${'x'.repeat(300)}`)
      .send({ code });
    const { body } = await api.as(token).get('/api/sessions');
    expect(body.data.map(({ current }: { current: boolean }) => current)).toEqual([false, true]);
    expect(body.data[0].label).toMatch(/^Phone\/1 x{192}$/);
    const page = await api.as(token).get('/api/sessions?limit=1');
    const rest = await api.as(token).get(`/api/sessions?limit=1&cursor=${page.body.nextCursor}`);
    expect([...page.body.data, ...rest.body.data]).toEqual(body.data);
    expect(rest.body.nextCursor).toBeNull();
  });

  test('A session is revoked only by its user, once', async () => {
    const [mine, other] = [await buildUser(api.identity), await buildUser(api.identity)];
    const second = await api.identity.sessions.create(mine.user.id);
    const { body } = await api.as(mine.token).get('/api/sessions');
    const { id } = body.data.find(({ current }: { current: boolean }) => !current);
    expect((await api.as(other.token).delete(`/api/sessions/${id}`)).status).toBe(404);
    expect((await api.as(second).get('/api/me')).status).toBe(200);
    expect((await api.as(mine.token).delete(`/api/sessions/${id}`)).status).toBe(204);
    expect((await api.as(second).get('/api/me')).status).toBe(401);
    expect((await api.as(mine.token).delete(`/api/sessions/${id}`)).status).toBe(404);
  });

  test('A session that another API process has revoked is refused within a second', async () => {
    const { user, token } = await buildUser(api.identity);
    expect((await api.as(token).get('/api/me')).status).toBe(200);
    await api.environment.database.pool.query('UPDATE sessions SET revoked_at = UTC_TIMESTAMP(3) WHERE user_id = ?', [
      user.id,
    ]);
    expect(await aSecondLater(async () => (await api.as(token).get('/api/me')).status)).toBe(401);
  });
});
