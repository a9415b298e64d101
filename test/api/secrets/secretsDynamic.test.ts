import fc from 'fast-check';
import { resolveSecretReferences } from '../../../models/secrets/references.ts';
import { parseTtl } from '../../../models/secrets/ttl.ts';
import { withoutKnownSecrets } from '../../../telemetry/knownSecrets.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

let api: TestApi;

beforeAll(async () => {
  api = await buildApi();
});
afterAll(() => api.close());

const path = '/api/dynamic-ui/secrets';
const form = { name: 'signIn', field: 'password' };

async function person() {
  const { user, token } = await buildUser(api.identity);
  const { space } = await buildSpace(api.identity, user.id);
  return { user, spaceId: space.id, client: api.as(token) };
}

test.each([
  ['30s', 30_000],
  ['15m', 900_000],
  ['24h', 86_400_000],
  ['7d', 604_800_000],
  ['30d', 2_592_000_000],
  ['PT30S', 30_000],
  ['PT1H30M', 5_400_000],
  ['P1DT12H', 129_600_000],
  ['P1W', 604_800_000],
  ['PT0.5S', 500],
  ['PT0,5H', 1_800_000],
])('the ttl %s is %d ms', (text, ms) => {
  expect(parseTtl(text)).toBe(ms);
});

test.each([
  '0',
  '0s',
  '-5m',
  '31d',
  '721h',
  'P31D',
  'PT0S',
  '',
  ' ',
  '5',
  'm',
  '5 m',
  '1.5h',
  '1y',
  'P1M',
  'P1Y',
  'P',
  'PT',
  'P1DT',
  'soon',
  '1e3s',
  '٣m',
  '9'.repeat(40),
])('the ttl "%s" is refused', async (ttl) => {
  const { client } = await person();
  const response = await client.post(path, { ...form, value: 'x', ttl });
  expect([response.status, response.body.code]).toEqual([400, 'INVALID_TTL']);
});

test('Any JSON value is stored, and comes back to a tool unchanged', async () => {
  const { user, spaceId, client } = await person();
  const { dynamic } = api.deps.secrets;
  const samples = [
    null,
    true,
    0,
    -1.5,
    '',
    'text',
    [],
    {},
    [{ a: [null] }],
    ...fc.sample(fc.json(), 20).map((text) => JSON.parse(text)),
  ];
  for (const value of samples) {
    const response = await client.post(path, { ...form, value, spaceId, ttl: '15m' });
    expect([response.status, Object.keys(response.body)]).toEqual([200, ['secretId']]);
    const { secretId } = response.body;
    expect([...(await dynamic.use(spaceId, user.id, [secretId]))]).toEqual([[secretId, value]]);
  }
});

test('Missing fields, unknown fields and values that are too large are refused', async () => {
  const { client } = await person();
  for (const body of [
    {},
    { ...form },
    { name: 'a', value: 1 },
    { ...form, value: 1, ttl: 5 },
    { ...form, value: 1, userId: 'x' },
  ]) {
    expect((await client.post(path, body)).status).toBe(400);
  }
  const large = await client.post(path, { ...form, value: 'x'.repeat(65_535) });
  expect([large.status, large.body.code]).toEqual([413, 'SECRET_TOO_LARGE']);
  expect((await client.post(path, { ...form, value: 'x'.repeat(65_534) })).status).toBe(200);
});

test('The values of a space that have not expired have a limited number and size', async () => {
  const { client, spaceId } = await person();
  const { pool } = api.environment.database;
  const store = async (value: string) => {
    const { status, body } = await client.post(path, { ...form, value, spaceId });
    return [status, body.code];
  };
  const expireAll = () =>
    pool.query('UPDATE dynamic_secrets SET expires_at = ? WHERE space_id = ?', [new Date(), spaceId]);
  for (let i = 0; i < 4; i++) expect(await store('x'.repeat(65_534))).toEqual([200, undefined]);
  expect(await store('refused value')).toEqual([422, 'TOO_MANY_FORM_SECRETS']);
  // A refused value takes no room among the values that are kept out of logs.
  expect(withoutKnownSecrets('refused value')).toBe('refused value');
  await expireAll();
  await Promise.all(Array.from({ length: 199 }, () => store('x')));
  // Only as many simultaneous requests succeed as there is room for.
  expect((await Promise.all([store('y'), store('z')])).map(([status]) => status).toSorted()).toEqual([200, 422]);
  await expireAll();
  expect(await store('x')).toEqual([200, undefined]);
});

test('Without a space, the default one is used, and 404 for another tenant’s space', async () => {
  const [mine, theirs] = [await person(), await person()];
  const { secretId } = (await mine.client.post(path, { ...form, value: 'v' })).body;
  expect((await api.deps.secrets.dynamic.use(mine.spaceId, mine.user.id, [secretId])).size).toBe(1);
  expect((await mine.client.post(path, { ...form, value: 'v', spaceId: theirs.spaceId })).status).toBe(404);
  const { token } = await buildUser(api.identity);
  const homeless = await api.as(token).post(path, { ...form, value: 'v' });
  expect([homeless.status, homeless.body.code]).toEqual([422, 'SPACE_REQUIRED']);
  expect((await api.as().post(path, { ...form, value: 'v' })).status).toBe(401);
});

test('Neither another user’s turn nor another space can use a value', async () => {
  const { user, spaceId, client } = await person();
  const colleague = await buildUser(api.identity);
  await api.identity.members.add(spaceId, colleague.user.email, 'editor');
  const { space } = await buildSpace(api.identity, user.id);
  const { secretId } = (await client.post(path, { ...form, value: 'v', spaceId })).body;
  const { dynamic } = api.deps.secrets;
  expect((await dynamic.use(spaceId, colleague.user.id, [secretId])).size).toBe(0);
  expect((await dynamic.use(space.id, user.id, [secretId])).size).toBe(0);
  expect((await dynamic.use(spaceId, user.id, [secretId, 'sec_absent'])).size).toBe(1);
});

test('Storing and using a value are in the audit log', async () => {
  const { user, spaceId, client } = await person();
  const { secretId } = (await client.post(path, { ...form, value: 'canary', spaceId })).body;
  await api.deps.secrets.dynamic.use(spaceId, user.id, [secretId]);
  const log = await client.get(`/api/spaces/${spaceId}/audit`);
  expect(log.body.data.map(({ action, target }: Record<string, unknown>) => [action, target])).toEqual([
    ['form-secret.used', secretId],
    ['form-secret.stored', secretId],
    ['space.made', null],
  ]);
  expect(log.text).not.toContain('canary');
});

test('An expired value is gone at once, and its row with the sweep', async () => {
  const { user, spaceId, client } = await person();
  const [short, long] = [
    (await client.post(path, { ...form, value: 'v', spaceId, ttl: '30s' })).body.secretId,
    (await client.post(path, { ...form, value: 'v', spaceId, ttl: '7d' })).body.secretId,
  ];
  const { pool } = api.environment.database;
  const { dynamic } = api.deps.secrets;
  await dynamic.purgeExpired(new Date()); // what other tests have left
  await pool.query('UPDATE dynamic_secrets SET expires_at = ? WHERE id = ?', [new Date(), short]);
  expect([...(await dynamic.use(spaceId, user.id, [short, long])).keys()]).toEqual([long]);
  expect(await dynamic.purgeExpired(new Date())).toBe(1);
  expect(await dynamic.purgeExpired(new Date())).toBe(0);
  const [rows] = await pool.query('SELECT id FROM dynamic_secrets WHERE space_id = ?', [spaceId]);
  expect(rows).toEqual([{ id: long }]);
});

test('References anywhere in an input are resolved, and nothing else is touched', async () => {
  const use = async (ids: readonly string[]) =>
    new Map(ids.filter((id) => id !== 'gone').map((id) => [id, { of: id }]));
  const input = {
    a: [{ $secret: 'x' }, 1, null],
    b: { c: { $secret: 'y' } },
    d: { $secret: 'x', more: 1 },
    e: { $secret: 5 },
  };
  expect(await resolveSecretReferences(input, use)).toEqual({
    ...input,
    a: [{ of: 'x' }, 1, null],
    b: { c: { of: 'y' } },
  });
  expect(await resolveSecretReferences({ $secret: 'x' }, use)).toEqual({ of: 'x' });
  await expect(resolveSecretReferences([{ $secret: 'gone' }], use)).rejects.toMatchObject({ code: 'UNKNOWN_SECRET' });
  const plain = { text: '{"$secret":"x"}' };
  expect(await resolveSecretReferences(plain, () => Promise.reject(new Error('not asked')))).toBe(plain);
});
