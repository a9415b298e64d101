import { isWellFormedApiKey } from '../../../models/identity/apiKeyFormat.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildUser } from '../../builders/identity.ts';
import { aSecondLater } from '../../support/clock.ts';
import { waitFor } from '../../support/waitFor.ts';

let api: TestApi;

beforeAll(async () => {
  api = await buildApi();
});
afterAll(() => api.close());

const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();
const create = (credential: string, body: object) => api.as(credential).post('/api/keys', body);

describe('POST /api/keys', () => {
  test('A new key is shown once', async () => {
    const { user, token } = await buildUser(api.identity);
    const expiresAt = inAnHour();
    const made = await create(token, { name: 'nightly', scopes: ['chat'], expiresAt });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      id: expect.stringMatching(/^key_/),
      key: expect.stringMatching(/^atr_/),
      name: 'nightly',
      hint: made.body.key.slice(0, 8),
      scopes: ['chat'],
      createdAt: expect.any(String),
      expiresAt,
      lastUsedAt: null,
    });
    expect(isWellFormedApiKey(made.body.key)).toBe(true);
    const [rows] = await api.environment.database.pool.query('SELECT * FROM api_keys WHERE user_id = ?', [user.id]);
    expect(JSON.stringify(rows)).not.toContain(made.body.key.slice(8));
    expect((await api.as(token).get('/api/keys')).text).not.toContain(made.body.key.slice(8));
  });

  test('A key without scopes may do everything', async () => {
    const { user, token } = await buildUser(api.identity);
    const { body } = await create(token, { name: 'all' });
    expect(body.scopes).toEqual(['*']);
    expect((await api.as(body.key).get('/api/me')).body.id).toBe(user.id);
  });

  test.each([
    ['no name', {}],
    ['a blank name', { name: '  ' }],
    ['a control character', { name: 'a\u0000b' }],
    ['an unknown scope', { name: 'k', scopes: ['root'] }],
    ['no scope at all', { name: 'k', scopes: [] }],
    ['a scope twice', { name: 'k', scopes: ['chat', 'chat'] }],
    ['a time that is none', { name: 'k', expiresAt: 'tomorrow' }],
    ['a field of ours', { name: 'k', userId: 'usr_1' }],
    ['a hash', { name: 'k', hash: 'x' }],
  ])('400 for %s', async (_what, body) => {
    const { token } = await buildUser(api.identity);
    expect((await create(token, body)).status).toBe(400);
  });

  test('An unknown scope is named', async () => {
    const { token } = await buildUser(api.identity);
    const { body } = await create(token, { name: 'k', scopes: ['chat', 'drive:raed'] });
    expect(body.errors).toEqual([
      { pointer: '/scopes/1', detail: expect.stringMatching(/^is "drive:raed", and must be one of: \*, chat, /) },
    ]);
    expect(body.detail).toContain('"drive:raed"');
    const unknown = api.identity.keys.create('usr_1', { name: 'k', scopes: ['chat', 'drive:raed'] });
    await expect(unknown).rejects.toThrow('There is no scope "drive:raed".');
  });

  test('422 for an expiry in the past', async () => {
    const { token } = await buildUser(api.identity);
    const response = await create(token, { name: 'k', expiresAt: '2020-01-01T00:00:00Z' });
    expect([response.status, response.body.code]).toEqual([422, 'EXPIRY_IN_THE_PAST']);
    expect(response.body.errors).toEqual([{ pointer: '/expiresAt', detail: 'must be in the future' }]);
  });
});

describe('a key', () => {
  test('A key can do what its scopes say, and no more', async () => {
    const { user } = await buildUser(api.identity);
    const { key } = await api.identity.keys.create(user.id, { name: 'k', scopes: ['spaces:read'] });
    expect((await api.as(key).get('/api/spaces')).status).toBe(200);
    const refused = await api.as(key).post('/api/spaces', { name: 'x' });
    expect([refused.status, refused.body.code]).toEqual([403, 'INSUFFICIENT_SCOPE']);
    expect(refused.body.detail).toContain('spaces:write');
  });

  test('A key that may write may also read', async () => {
    const { user } = await buildUser(api.identity);
    const { key } = await api.identity.keys.create(user.id, { name: 'k', scopes: ['spaces:write'] });
    expect((await api.as(key).get('/api/spaces')).status).toBe(200);
  });

  test('A key never makes a key with more scopes or a longer life than its own', async () => {
    const { user } = await buildUser(api.identity);
    const expiresAt = new Date(Date.now() + 3_600_000);
    const { key } = await api.identity.keys.create(user.id, { name: 'k', scopes: ['keys', 'spaces:write'], expiresAt });
    const later = new Date(expiresAt.getTime() + 1).toISOString();
    for (const [body, code] of [
      [{ scopes: ['*'] }, 'SCOPE_TOO_WIDE'],
      [{ scopes: ['chat'] }, 'SCOPE_TOO_WIDE'],
      [{ scopes: ['keys', 'chat'] }, 'SCOPE_TOO_WIDE'],
      [{ scopes: ['keys'], expiresAt: later }, 'EXPIRY_TOO_LATE'],
    ] as const) {
      const response = await create(key, { name: 'child', ...body });
      expect([response.status, response.body.code]).toEqual([403, code]);
    }
    const wider = await create(key, { name: 'child', scopes: ['keys', 'audit'] });
    expect(wider.body.detail).toContain('"audit"');
    const plain = await create(key, { name: 'child' });
    expect(plain.body).toMatchObject({ scopes: ['keys', 'spaces:write'], expiresAt: expiresAt.toISOString() });
    expect((await create(key, { name: 'child', scopes: ['spaces:read'], expiresAt: null })).body.expiresAt).toBe(
      expiresAt.toISOString(),
    );
  });

  test('A key is refused from its expiry on', async () => {
    const { user } = await buildUser(api.identity);
    const { key } = await api.identity.keys.create(user.id, { name: 'k', expiresAt: new Date(Date.now() + 300) });
    expect((await api.as(key).get('/api/me')).status).toBe(200);
    await waitFor('the refusal', async () => (await api.as(key).get('/api/me')).status === 401);
  });

  test('A key remembers when it was last used', async () => {
    const { user, token } = await buildUser(api.identity);
    const { key } = await api.identity.keys.create(user.id, { name: 'k' });
    await api.as(key).get('/api/me');
    const lastUsed = async () => (await api.as(token).get('/api/keys')).body.data[0].lastUsedAt;
    expect(await waitFor('the time of the last use', lastUsed)).toMatch(/^\d{4}-/);
  });
});

describe('DELETE /api/keys/{keyId}', () => {
  test('Revoking a key takes effect at once, also for the keys made with it, and for theirs', async () => {
    const { token } = await buildUser(api.identity);
    const parent = (await create(token, { name: 'parent' })).body;
    const child = (await create(parent.key, { name: 'child' })).body;
    const grandchild = (await create(child.key, { name: 'grandchild' })).body;
    const bystander = (await create(token, { name: 'bystander' })).body;
    for (const { key } of [parent, child, grandchild]) expect((await api.as(key).get('/api/me')).status).toBe(200);
    expect((await api.as(token).delete(`/api/keys/${parent.id}`)).status).toBe(204);
    for (const { key } of [parent, child, grandchild]) {
      const refused = await api.as(key).get('/api/me');
      expect([refused.status, refused.body.code]).toEqual([401, 'INVALID_API_KEY']);
    }
    expect((await api.as(bystander.key).get('/api/me')).status).toBe(200);
    expect((await api.as(token).delete(`/api/keys/${parent.id}`)).status).toBe(404);
    const { body } = await api.as(token).get('/api/keys');
    expect(body.data.map(({ id }: { id: string }) => id)).toEqual([bystander.id]);
  });

  test('a key that is being revoked leaves no child behind', async () => {
    const { user } = await buildUser(api.identity);
    for (let round = 0; round < 10; round++) {
      const { row, key } = await api.identity.keys.create(user.id, { name: 'parent' });
      const made = await Promise.all([
        ...Array.from({ length: 4 }, () => create(key, { name: 'child' })),
        api.identity.keys.revoke(user.id, row.id),
      ]);
      for (const response of made) {
        if (typeof response === 'boolean' || response.status !== 201) continue;
        expect((await api.as(response.body.key).get('/api/me')).status).toBe(401);
      }
    }
  });

  test('404 for another user’s key, which stays valid', async () => {
    const [mine, other] = [await buildUser(api.identity), await buildUser(api.identity)];
    const { id, key } = (await create(mine.token, { name: 'k' })).body;
    expect((await api.as(other.token).delete(`/api/keys/${id}`)).status).toBe(404);
    expect((await api.as(key).get('/api/me')).status).toBe(200);
  });

  test('A key that another API process has revoked is refused within a second', async () => {
    const { user } = await buildUser(api.identity);
    const { key } = await api.identity.keys.create(user.id, { name: 'k' });
    expect((await api.as(key).get('/api/me')).status).toBe(200);
    await api.environment.database.pool.query('UPDATE api_keys SET revoked_at = UTC_TIMESTAMP(3) WHERE user_id = ?', [
      user.id,
    ]);
    expect(await aSecondLater(async () => (await api.as(key).get('/api/me')).status)).toBe(401);
  });
});

test('GET /api/keys lists only one’s own keys, in pages', async () => {
  const [mine, other] = [await buildUser(api.identity), await buildUser(api.identity)];
  for (const name of ['a', 'b', 'c']) await create(mine.token, { name });
  await create(other.token, { name: 'theirs' });
  const names: string[] = [];
  let cursor = '';
  do {
    const { body } = await api.as(mine.token).get(`/api/keys?limit=2${cursor}`);
    names.push(...body.data.map(({ name }: { name: string }) => name));
    cursor = body.nextCursor === null ? '' : `&cursor=${body.nextCursor}`;
  } while (cursor !== '');
  expect(names).toEqual(['c', 'b', 'a']);
});
