import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

// The log of a space has every change of rights, and every read of secrets.

let api: TestApi;

beforeAll(async () => {
  api = await buildApi();
});
afterAll(() => api.close());

interface Entry {
  action: string;
  target: string | null;
  userId: string | null;
  credentialId: string | null;
  address: string | null;
}

test('Members, roles, invitations, keys, sessions, secrets and settings are logged with actor and credential', async () => {
  const { user, token } = await buildUser(api.identity, 'owner');
  const other = await buildUser(api.identity, 'other');
  const owner = api.as(token);
  const otherSession = (await api.identity.sessions.list(other.user.id, { limit: 1 })).data[0]?.id ?? '';
  const session = (await api.identity.sessions.list(user.id, { limit: 1 })).data[0]?.id ?? '';
  const spaceId = (await owner.post('/api/spaces', { name: 'Audited' })).body.id as string;
  const space = `/api/spaces/${spaceId}`;
  await owner.patch(space, { name: 'Renamed' });
  const added = (await owner.post(`${space}/members`, { email: other.user.email, role: 'viewer' })).body;
  await api.as(other.token).post(`/api/invitations/${added.id}/accept`);
  await owner.patch(`${space}/members/${other.user.id}`, { role: 'editor' });
  await owner.delete(`${space}/members/${other.user.id}`);
  const kept = (await owner.post(`${space}/invitations`, { email: 'kept@example.com', role: 'viewer' })).body;
  const dropped = (await owner.post(`${space}/invitations`, { email: 'dropped@example.com', role: 'viewer' })).body;
  await owner.delete(`${space}/invitations/${dropped.id}`);
  const joined = await api.as().post(new URL(kept.link).pathname);
  await api.as().post('/auth/exchange-code', { code: joined.body.code });
  const invited = (await api.identity.users.byEmail('kept@example.com'))?.id;
  const key = (await owner.post('/api/keys', { name: 'k', scopes: ['secrets'] })).body;
  await api.as(key.key).put(`${space}/secrets/TOKEN`, { value: 'a value' });
  await owner.get(`${space}/secrets/env`);
  await owner.delete(`${space}/secrets/TOKEN`);
  await owner.delete(`/api/keys/${key.id}`);
  await owner.put(`/api/billing/${spaceId}/caps`, { perTurn: 5, perDay: null, perMemberPerDay: null });
  const second = await api.as().post('/auth/exchange-code', { code: (await owner.post('/auth/codes')).body.code });
  const sessions = await api.as(second.body.sessionToken).get('/api/sessions');
  const newer = sessions.body.data.find(({ current }: { current: boolean }) => current).id;
  await owner.delete(`/api/sessions/${newer}`);

  const log = (await owner.get(`${space}/audit?limit=200`)).body.data as Entry[];
  const told = log
    .toReversed()
    .map(({ action, target, userId, credentialId }) => [action, target, userId, credentialId]);
  const mine = (action: string, target: string | null) => [action, target, user.id, session];
  expect(told).toEqual([
    mine('space.made', null),
    mine('space.renamed', null),
    mine('invitation.made', added.id),
    ['member.added', other.user.id, other.user.id, otherSession],
    ['invitation.accepted', added.id, other.user.id, otherSession],
    mine('member.role-changed', other.user.id),
    mine('member.removed', other.user.id),
    mine('invitation.made', kept.id),
    mine('invitation.made', dropped.id),
    mine('invitation.revoked', dropped.id),
    ['member.added', invited, invited, null],
    ['invitation.accepted', kept.id, invited, null],
    ['signed-in', null, invited, expect.stringMatching(/^ses_/)],
    mine('key.made', key.id),
    ['secret.set', 'TOKEN', user.id, key.id],
    mine('secrets.read', null),
    mine('secret.deleted', 'TOKEN'),
    mine('key.revoked', key.id),
    mine('spending-caps.changed', null),
    ['signed-in', null, user.id, newer],
    mine('session.revoked', newer),
  ]);
  expect(log.every(({ address }) => address !== null)).toBe(true);
  expect(JSON.stringify(log)).not.toContain('a value');
});

test('a sign-in is logged in every space of the user, and in no other', async () => {
  const { user } = await buildUser(api.identity);
  const stranger = await buildUser(api.identity);
  const spaces = [await buildSpace(api.identity, user.id), await buildSpace(api.identity, user.id)];
  const foreign = await buildSpace(api.identity, stranger.user.id);
  await api.identity.codes.exchange((await api.identity.codes.create(user.id)).code);
  const count = async (spaceId: string) => {
    const [rows] = await api.environment.database.pool.query(
      "SELECT COUNT(*) AS n FROM audit_entries WHERE space_id = ? AND action = 'signed-in'",
      [spaceId],
    );
    return (rows as { n: number }[])[0]?.n;
  };
  expect(await Promise.all([...spaces, foreign].map(({ space }) => count(space.id)))).toEqual([1, 1, 0]);
});
