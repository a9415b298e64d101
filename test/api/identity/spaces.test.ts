import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

let api: TestApi;

beforeAll(async () => {
  api = await buildApi();
});
afterAll(() => api.close());

test('GET /api/me names the caller and the caller’s spaces', async () => {
  const { user, token } = await buildUser(api.identity);
  expect((await api.as(token).get('/api/me')).body).toEqual({
    id: user.id,
    email: user.email,
    name: user.name,
    defaultSpaceId: null,
    spaces: [],
  });
  const { space } = await buildSpace(api.identity, user.id, 'First');
  await buildSpace(api.identity, user.id, 'Second');
  const { body } = await api.as(token).get('/api/me');
  expect(body.defaultSpaceId).toBe(space.id);
  expect(body.spaces.map(({ name, role }: { name: string; role: string }) => [name, role])).toEqual([
    ['First', 'owner'],
    ['Second', 'owner'],
  ]);
});

describe('POST /api/spaces', () => {
  test('The user who makes a space owns it', async () => {
    const { token } = await buildUser(api.identity);
    const made = await api.as(token).post('/api/spaces', { name: 'Résumé 🗂️' });
    expect([made.status, made.body]).toEqual([
      201,
      { id: expect.stringMatching(/^spc_/), name: 'Résumé 🗂️', role: 'owner', createdAt: expect.any(String) },
    ]);
    expect((await api.as(token).get(`/api/spaces/${made.body.id}`)).body).toEqual(made.body);
    const again = await api.as(token).post('/api/spaces', { name: 'Résumé 🗂️' });
    expect(again.body.id).not.toBe(made.body.id);
  });

  test('The same Idempotency-Key makes one space', async () => {
    const { token } = await buildUser(api.identity);
    const make = (name: string) => api.as(token).post('/api/spaces', { name }).set('idempotency-key', 'one');
    const made = await make('Once');
    const again = await make('Once');
    expect([again.status, again.body]).toEqual([201, made.body]);
    expect((await make('Another')).status).toBe(422);
    expect((await api.as(token).get('/api/spaces')).body.data).toEqual([made.body]);
  });

  test('A name may have 200 of the widest characters, and no more', async () => {
    const { token } = await buildUser(api.identity);
    expect((await api.as(token).post('/api/spaces', { name: '🗂'.repeat(200) })).body.name).toBe('🗂'.repeat(200));
    expect((await api.as(token).post('/api/spaces', { name: '🗂'.repeat(201) })).status).toBe(400);
  });

  test.each([
    ['no name', {}],
    ['a blank name', { name: ' \t' }],
    ['an id of the client’s', { name: 'x', id: 'spc_mine' }],
    ['a role', { name: 'x', role: 'owner' }],
    ['another owner', { name: 'x', createdBy: 'usr_1' }],
    ['a prototype', JSON.parse('{"name":"x","__proto__":{"role":"owner"}}')],
  ])('400 for %s', async (_what, body) => {
    const { token } = await buildUser(api.identity);
    expect((await api.as(token).post('/api/spaces', body)).status).toBe(400);
  });
});

test('GET /api/spaces lists only one’s own spaces, in pages', async () => {
  const [mine, other] = [await buildUser(api.identity), await buildUser(api.identity)];
  const made = [];
  for (const name of ['a', 'b', 'c']) made.push((await buildSpace(api.identity, mine.user.id, name)).space.id);
  await buildSpace(api.identity, other.user.id);
  const first = await api.as(mine.token).get('/api/spaces?limit=2');
  const second = await api.as(mine.token).get(`/api/spaces?limit=2&cursor=${first.body.nextCursor}`);
  expect([...first.body.data, ...second.body.data].map(({ id }: { id: string }) => id)).toEqual(made);
  expect(second.body.nextCursor).toBeNull();
});

describe('PATCH and DELETE /api/spaces/{spaceId}', () => {
  test('Only owners can rename and delete a space', async () => {
    const [owner, editor, viewer] = [
      await buildUser(api.identity),
      await buildUser(api.identity),
      await buildUser(api.identity),
    ];
    const { space } = await buildSpace(api.identity, owner.user.id);
    await api.identity.members.add(space.id, editor.user.email, 'editor');
    await api.identity.members.add(space.id, viewer.user.email, 'viewer');
    for (const { token } of [editor, viewer]) {
      const renamed = await api.as(token).patch(`/api/spaces/${space.id}`, { name: 'Mine' });
      expect([renamed.status, renamed.body.code]).toEqual([403, 'ROLE_TOO_LOW']);
      expect((await api.as(token).delete(`/api/spaces/${space.id}`)).status).toBe(403);
    }
    const renamed = await api.as(owner.token).patch(`/api/spaces/${space.id}`, { name: 'Ours' });
    expect([renamed.status, renamed.body.name, renamed.body.role]).toEqual([200, 'Ours', 'owner']);
    for (const { token } of [owner, editor, viewer]) {
      expect((await api.as(token).get(`/api/spaces/${space.id}`)).body.name).toBe('Ours');
    }
  });

  test('Renaming a space to its own name succeeds, and 400 for no name', async () => {
    const { user, token } = await buildUser(api.identity);
    const { space } = await buildSpace(api.identity, user.id, 'Same');
    for (let i = 0; i < 2; i++) {
      expect((await api.as(token).patch(`/api/spaces/${space.id}`, { name: 'Same' })).status).toBe(200);
    }
    for (const body of [{}, { name: null }, { ownerId: 'x' }]) {
      expect((await api.as(token).patch(`/api/spaces/${space.id}`, body)).status).toBe(400);
    }
  });

  test('A deleted space is gone for all members at once, and another one is the default', async () => {
    const [owner, member] = [await buildUser(api.identity), await buildUser(api.identity)];
    const { space } = await buildSpace(api.identity, owner.user.id);
    const { space: second } = await buildSpace(api.identity, owner.user.id);
    await api.identity.members.add(space.id, member.user.email, 'editor');
    expect((await api.as(member.token).get(`/api/spaces/${space.id}`)).status).toBe(200);
    const deleted = await api.as(owner.token).delete(`/api/spaces/${space.id}`);
    expect([deleted.status, deleted.headers.location]).toEqual([204, expect.stringMatching(/^\/api\/operations\/op_/)]);
    for (const { token } of [owner, member]) {
      expect((await api.as(token).get(`/api/spaces/${space.id}`)).status).toBe(404);
    }
    expect((await api.as(owner.token).delete(`/api/spaces/${space.id}`)).status).toBe(404);
    const me = await api.as(owner.token).get('/api/me');
    expect([me.body.defaultSpaceId, me.body.spaces.length]).toEqual([second.id, 1]);
    expect((await api.as(member.token).get('/api/spaces')).body.data).toEqual([]);
    const operation = await api.as(owner.token).get(deleted.headers.location ?? '');
    expect(operation.body).toMatchObject({ kind: 'deleteSpace' });
  });
});
