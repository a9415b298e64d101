import type { Role } from '../../../models/identity/tables.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

let api: TestApi;

beforeAll(async () => {
  api = await buildApi();
});
afterAll(() => api.close());

/** A space with one person of each role, and an outsider. */
async function team() {
  const [owner, editor, viewer, stranger] = await Promise.all(Array.from({ length: 4 }, () => buildUser(api.identity)));
  if (!owner || !editor || !viewer || !stranger) throw new Error('unreachable');
  const { space } = await buildSpace(api.identity, owner.user.id);
  await api.identity.members.add(space.id, editor.user.email, 'editor');
  await api.identity.members.add(space.id, viewer.user.email, 'viewer');
  return { owner, editor, viewer, stranger, path: `/api/spaces/${space.id}/members`, spaceId: space.id };
}

test('Every member can list the members', async () => {
  const { owner, editor, viewer, path } = await team();
  const { body } = await api.as(viewer.token).get(path);
  const roles = Object.fromEntries(body.data.map(({ email, role }: { email: string; role: Role }) => [email, role]));
  expect(roles).toEqual({ [owner.user.email]: 'owner', [editor.user.email]: 'editor', [viewer.user.email]: 'viewer' });
  const first = await api.as(viewer.token).get(`${path}?limit=2`);
  const rest = await api.as(viewer.token).get(`${path}?limit=2&cursor=${first.body.nextCursor}`);
  expect([...first.body.data, ...rest.body.data]).toEqual(body.data);
});

describe('POST', () => {
  test('An invitation looks the same whether or not the address has an account', async () => {
    const { owner, stranger, path, spaceId } = await team();
    const answers = [];
    for (const email of [` ${stranger.user.email.toUpperCase()} `, `nobody-${spaceId}@example.com`]) {
      const { status, body } = await api.as(owner.token).post(path, { email, role: 'viewer' });
      expect(body.email).toBe(email.trim().toLowerCase());
      answers.push({
        status,
        body: { ...body, id: '', email: '', link: typeof body.link, createdAt: '', expiresAt: '' },
      });
    }
    const shape = { id: '', email: '', link: 'string', createdAt: '', expiresAt: '' };
    const body = { ...shape, role: 'viewer', status: 'invited', mailed: false, invitedBy: owner.user.id };
    expect(answers).toEqual([
      { status: 201, body },
      { status: 201, body },
    ]);
    expect((await api.as(owner.token).get(path)).body.data).toHaveLength(3);
    expect((await api.as(stranger.token).get(`/api/spaces/${spaceId}`)).status).toBe(404);
  });

  test('409 for inviting a member', async () => {
    const { owner, viewer, path } = await team();
    const again = await api.as(owner.token).post(path, { email: viewer.user.email, role: 'owner' });
    expect([again.status, again.body.code]).toEqual([409, 'ALREADY_MEMBER']);
  });

  test.each([
    ['no role', { email: 'a@example.com' }],
    ['an unknown role', { email: 'a@example.com', role: 'admin' }],
    ['no e-mail', { role: 'viewer' }],
    ['a field of ours', { email: 'a@example.com', role: 'viewer', userId: 'usr_1' }],
  ])('400 for %s', async (_what, body) => {
    const { owner, path } = await team();
    expect((await api.as(owner.token).post(path, body)).status).toBe(400);
  });
});

test('Only owners can change the members', async () => {
  const { editor, viewer, stranger, path } = await team();
  for (const { token } of [editor, viewer]) {
    const statuses = [
      (await api.as(token).post(path, { email: stranger.user.email, role: 'viewer' })).status,
      (await api.as(token).patch(`${path}/${viewer.user.id}`, { role: 'owner' })).status,
      (await api.as(token).patch(`${path}/${editor.user.id}`, { role: 'owner' })).status,
    ];
    expect(statuses).toEqual([403, 403, 403]);
  }
  expect((await api.as(viewer.token).delete(`${path}/${editor.user.id}`)).status).toBe(403);
});

describe('PATCH', () => {
  test('A new role takes effect at once, and the same role again changes nothing', async () => {
    const { owner, editor, path, spaceId } = await team();
    expect((await api.as(editor.token).get(`/api/spaces/${spaceId}`)).body.role).toBe('editor');
    for (let i = 0; i < 2; i++) {
      const changed = await api.as(owner.token).patch(`${path}/${editor.user.id}`, { role: 'viewer' });
      expect([changed.status, changed.body.role, changed.body.email]).toEqual([200, 'viewer', editor.user.email]);
    }
    expect((await api.as(editor.token).get(`/api/spaces/${spaceId}`)).body.role).toBe('viewer');
  });

  test('404 for changing or removing a user who is not a member', async () => {
    const { owner, stranger, path } = await team();
    for (const id of [stranger.user.id, 'usr_absent']) {
      expect((await api.as(owner.token).patch(`${path}/${id}`, { role: 'viewer' })).status).toBe(404);
      expect((await api.as(owner.token).delete(`${path}/${id}`)).status).toBe(404);
    }
  });
});

describe('DELETE', () => {
  test('A removed member loses access at once, and a second removal is 404', async () => {
    const { owner, editor, path, spaceId } = await team();
    expect((await api.as(editor.token).get(`/api/spaces/${spaceId}`)).status).toBe(200);
    expect((await api.as(owner.token).delete(`${path}/${editor.user.id}`)).status).toBe(204);
    expect((await api.as(editor.token).get(`/api/spaces/${spaceId}`)).status).toBe(404);
    expect((await api.as(owner.token).delete(`${path}/${editor.user.id}`)).status).toBe(404);
  });

  test('Every member can leave', async () => {
    const { viewer, path, spaceId } = await team();
    expect((await api.as(viewer.token).delete(`${path}/${viewer.user.id}`)).status).toBe(204);
    expect((await api.as(viewer.token).get(`/api/spaces/${spaceId}`)).status).toBe(404);
  });
});

describe('the last owner', () => {
  test('The last owner can neither leave nor step down', async () => {
    const { owner, path } = await team();
    const own = `${path}/${owner.user.id}`;
    for (const response of [
      await api.as(owner.token).delete(own),
      await api.as(owner.token).patch(own, { role: 'editor' }),
    ]) {
      expect([response.status, response.body.code]).toEqual([409, 'LAST_OWNER']);
    }
    expect((await api.as(owner.token).patch(own, { role: 'owner' })).status).toBe(200);
  });

  test('A disabled owner does not count as another owner', async () => {
    const { owner, editor, path } = await team();
    await api.as(owner.token).patch(`${path}/${editor.user.id}`, { role: 'owner' });
    await api.identity.users.setDisabled(editor.user.id, true);
    const own = `${path}/${owner.user.id}`;
    for (const response of [
      await api.as(owner.token).delete(own),
      await api.as(owner.token).patch(own, { role: 'viewer' }),
    ]) {
      expect([response.status, response.body.code]).toEqual([409, 'LAST_OWNER']);
    }
    expect((await api.as(owner.token).delete(`${path}/${editor.user.id}`)).status).toBe(204);
  });

  test('One owner is left when two owners leave, or demote each other, at the same time', async () => {
    for (let round = 0; round < 5; round++) {
      const { owner, editor, path } = await team();
      await api.as(owner.token).patch(`${path}/${editor.user.id}`, { role: 'owner' });
      const statuses = await Promise.all([
        api.as(owner.token).delete(`${path}/${round % 2 === 0 ? owner.user.id : editor.user.id}`),
        api.as(editor.token).patch(`${path}/${round % 2 === 0 ? editor.user.id : owner.user.id}`, { role: 'viewer' }),
      ]).then((responses) => responses.map(({ status }) => status));
      expect(statuses.filter((status) => status >= 500)).toEqual([]);
      const { body } = await api.as((await buildUser(api.identity)).token).get('/api/me');
      expect(body.spaces).toEqual([]);
      const owners = (await api.identity.members.list(path.split('/')[3] ?? '', { limit: 50 })).data;
      expect(owners.filter(({ role }) => role === 'owner')).toHaveLength(1);
    }
  });
});
