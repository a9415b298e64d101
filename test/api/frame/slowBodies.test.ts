import { type RunningApi, startApi } from '../../../api/frame/server.ts';
import { operator } from '../../../models/audit/audit.ts';
import { acceptMessage } from '../../../models/chat/acceptMessage.ts';
import { chatModels } from '../../../models/chat/models.ts';
import { createEgressRules } from '../../../models/egress/egressRules.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';
import { boundary, end, file } from '../../support/rawUpload.ts';
import { beginSlowly } from '../../support/slowRequest.ts';
import { waitFor } from '../../support/waitFor.ts';

let api: TestApi;
let server: RunningApi;
/** The spaces that a caller was let into, in order. */
const entered: string[] = [];

beforeAll(async () => {
  api = await buildApi();
  const { identity, config } = api.deps;
  const members = {
    ...identity.members,
    async access(spaceId: string, userId: string) {
      const access = await identity.members.access(spaceId, userId);
      entered.push(spaceId);
      return access;
    },
  };
  const http = { ...config.http, port: 0 };
  server = await startApi({ ...api.deps, identity: { ...identity, members }, config: { ...config, http } });
});
afterEach(() => {
  entered.splice(0);
});
afterAll(async () => {
  await server.close({ graceMs: 0 });
  await api.close();
});

async function buildOwners() {
  const [owner, other] = [await buildUser(api.identity), await buildUser(api.identity)];
  const { space } = await buildSpace(api.identity, owner.user.id);
  await api.identity.members.add(space.id, other.user.email, 'owner');
  return { owner, other, space };
}

type Owners = Awaited<ReturnType<typeof buildOwners>>;

const json = (method: string, path: string, body: object) => ({ method, path, body: JSON.stringify(body) });
const writes = {
  'a member': json('POST', '/members', { email: 'nobody@example.com', role: 'owner' }),
  'an invitation': json('POST', '/invitations', { email: 'nobody@example.com', role: 'owner' }),
  'what may be reached': json('PUT', '/egress', { allow: ['a.example'], deny: [] }),
  'a thread': json('POST', '/threads', { title: 'late' }),
  'a secret': json('PUT', '/secrets/LATE', { value: 'late' }),
  'a folder': json('POST', '/drive/folders', { path: '/late' }),
  'a file': {
    method: 'POST',
    path: '/drive/upload',
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: Buffer.concat([file('late'), end]),
  },
};

describe.each(Object.entries(writes))('a request for %s whose body comes slowly', (_what, { path, ...request }) => {
  test.each([
    ['its sender was removed', '404 NOT_FOUND', ({ space, other }: Owners) => remove(space.id, other.user.id)],
    ['its session was revoked', '401 NOT_AUTHENTICATED', ({ other }: Owners) => signOut(other.token)],
    [
      'the space was deleted',
      '404 NOT_FOUND',
      ({ space, owner }: Owners) => api.identity.spaces.remove(space.id, owner.user.id),
    ],
  ])('The request is refused when %s meanwhile', async (_when, refusal, change) => {
    const owners = await buildOwners();
    const { other, space } = owners;
    const base = `/api/spaces/${space.id}`;
    const finish = await beginSlowly(server.url, { ...request, path: base + path, token: other.token });
    await waitFor('the request to be let in', () => entered.includes(space.id));
    await change(owners);
    expect(await finish()).toBe(refusal);
  });
});

test('The same requests are taken from a caller who keeps the right', async () => {
  const { other, space } = await buildOwners();
  for (const [what, { path, ...request }] of Object.entries(writes)) {
    const finish = await beginSlowly(server.url, {
      ...request,
      path: `/api/spaces/${space.id}${path}`,
      token: other.token,
    });
    const answer = await finish();
    expect([what, answer]).toEqual([what, expect.stringMatching(/^20[012] /)]);
  }
});

test('Nothing is written into a space that was deleted after its caller was let in', async () => {
  const { owner, space } = await buildOwners();
  const { database } = api.environment;
  const { id: userId } = owner.user;
  const { Thread } = chatModels(database);
  const thread = await Thread.make({ id: `thr_${space.id}`, spaceId: space.id, userId, title: null });
  await api.identity.spaces.remove(space.id, userId);
  const intent = {
    userId,
    spaceId: space.id,
    authority: { scopes: null, apiKeyId: null },
    parts: [{ type: 'text' as const, text: 'late', state: 'done' as const }],
    mode: 'ask' as const,
    modelId: 'demo',
    effort: null,
    notificationPriority: 'default' as const,
    onBusy: 'queue' as const,
  };
  const gone = { code: 'NOT_FOUND' };
  await expect(acceptMessage(database, intent)).rejects.toMatchObject(gone);
  await expect(acceptMessage(database, { ...intent, threadId: thread.id })).rejects.toMatchObject(gone);
  await expect(acceptMessage(database, { ...intent, alias: 'late' })).rejects.toMatchObject(gone);
  await expect(Thread.make({ id: 'thr_late', spaceId: space.id, userId, title: null })).rejects.toMatchObject(gone);
  const rules = createEgressRules(database);
  await expect(rules.put(space.id, { allow: [], deny: [] }, { ...operator, userId })).rejects.toMatchObject(gone);
});

const remove = (spaceId: string, userId: string) => api.identity.members.remove(spaceId, userId);

async function signOut(token: string): Promise<void> {
  await api.as(token).post('/auth/logout').expect(204);
}
