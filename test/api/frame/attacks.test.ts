import { createHmac, generateKeyPairSync, randomBytes } from 'node:crypto';
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, SignJWT } from 'jose';
import { loadContract } from '../../../api/frame/contract.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

// Forged session tokens and keys: each gets 401, and none may reach an account.

let api: TestApi;
let userId: string;
let sessionId: string;
let kid: string;
let ourKey: CryptoKey;
let publicJwk: string;

beforeAll(async () => {
  api = await buildApi();
  ({
    user: { id: userId },
  } = await buildUser(api.identity));
  sessionId = (await api.identity.sessions.list(userId, { limit: 1 })).data[0]?.id ?? '';
  ({ id: kid, privateKey: ourKey } = await api.identity.signingKeys.current());
  const [rows] = await api.environment.database.pool.query('SELECT public_jwk AS jwk FROM signing_keys WHERE id = ?', [
    kid,
  ]);
  publicJwk = (rows as { jwk: string }[])[0]?.jwk ?? '';
});
afterAll(() => api.close());

const now = () => Math.floor(Date.now() / 1_000);
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

function claims(changes: Record<string, unknown> = {}): Record<string, unknown> {
  const { installation } = api.environment.config;
  const issuer = `urn:atrium:${installation}`;
  const all = {
    sub: userId,
    sid: sessionId,
    iss: issuer,
    aud: `${issuer}:api`,
    iat: now(),
    nbf: now(),
    exp: now() + 600,
  };
  return { ...all, ...changes };
}

async function signed(
  payload: Record<string, unknown>,
  header: Record<string, unknown> = {},
  key: CryptoKey | Uint8Array = ourKey,
) {
  return new SignJWT(payload).setProtectedHeader({ alg: 'EdDSA', typ: 'at+jwt', kid, ...header }).sign(key);
}

async function statusOf(token: string): Promise<number> {
  const response = await api.as(token).get('/api/me');
  if (response.status === 401) expect(response.headers['www-authenticate']).toContain('error="invalid_token"');
  return response.status;
}

test('A token that these tests make with honest claims is accepted', async () => {
  expect(await statusOf(await signed(claims()))).toBe(200);
});

test('401 for "none" as algorithm, in every spelling, with and without a signature', async () => {
  const real = (await signed(claims())).split('.')[2];
  for (const alg of ['none', 'None', 'NONE', 'nOnE', '']) {
    for (const signature of ['', real]) {
      expect(await statusOf(`${encode({ alg, typ: 'at+jwt', kid })}.${encode(claims())}.${signature}`)).toBe(401);
    }
  }
});

test('401 for key confusion: an HMAC keyed with the public key, in each form of the key', async () => {
  const x = (JSON.parse(publicJwk) as { x: string }).x;
  for (const secret of [publicJwk, x, Buffer.from(x, 'base64url'), kid]) {
    for (const [alg, hash] of [
      ['HS256', 'sha256'],
      ['HS384', 'sha384'],
      ['HS512', 'sha512'],
      ['EdDSA', 'sha256'],
    ] as const) {
      const input = `${encode({ alg, typ: 'at+jwt', kid })}.${encode(claims())}`;
      const mac = createHmac(hash, secret).update(input).digest('base64url');
      expect(await statusOf(`${input}.${mac}`)).toBe(401);
    }
  }
});

test('401 for a key that the token brings along: jwk, jku, x5u, x5c, or a kid that points elsewhere', async () => {
  const own = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const jwk = await exportJWK(own.publicKey);
  for (const header of [
    { jwk },
    { jwk, kid: undefined },
    { jku: 'http://127.0.0.1:1/keys.json' },
    { x5u: 'http://127.0.0.1:1/cert' },
    { x5c: ['MIIB'] },
    { kid: '../../../../dev/null' },
    { kid: "' OR 1=1 --" },
    { kid: 'sgk_absent' },
    { kid: undefined },
    { kid: 7 },
    { kid: ['a'] },
    { kid: '__proto__' },
  ]) {
    expect(await statusOf(await signed(claims(), header as never, own.privateKey))).toBe(401);
  }
});

test('401 for another algorithm under the id of Atrium’s key', async () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = (await importJWK(privateKey.export({ format: 'jwk' }) as never, 'ES256')) as CryptoKey;
  expect(await statusOf(await signed(claims(), { alg: 'ES256' }, key))).toBe(401);
});

test.each([
  ['expired', () => claims({ iat: now() - 7_200, nbf: now() - 7_200, exp: now() - 60 })],
  ['not yet valid', () => claims({ nbf: now() + 60 })],
  ['made in the future', () => claims({ iat: now() + 60 })],
  ['older than any session', () => claims({ iat: now() - 13 * 3_600, nbf: now() - 13 * 3_600 })],
  ['without an expiry', () => claims({ exp: undefined })],
  ['without a time of making', () => claims({ iat: undefined })],
  ['without a subject', () => claims({ sub: undefined })],
  ['without a session', () => claims({ sid: undefined })],
  ['of a session that is not there', () => claims({ sid: 'ses_absent' })],
  ['of another user’s session', () => claims({ sub: 'usr_other' })],
  ['whose subject is not a string', () => claims({ sub: { $ne: '' } })],
  ['for another audience', () => claims({ aud: 'urn:atrium:other:api' })],
  ['of another issuer', () => claims({ iss: 'https://issuer.example' })],
  ['for no audience', () => claims({ aud: [] })],
])('401 for a token %s, signed with Atrium’s own key', async (_what, payload) => {
  expect(await statusOf(await signed(payload()))).toBe(401);
});

test('401 for a token of another type, or with an unknown critical header', async () => {
  expect(await statusOf(await signed(claims(), { typ: 'JWT' }))).toBe(401);
  expect(await statusOf(await signed(claims(), { typ: undefined }))).toBe(401);
  const header = encode({ alg: 'EdDSA', typ: 'at+jwt', kid, crit: ['exp'], exp: 1 });
  expect(await statusOf(`${header}.${encode(claims())}.${'A'.repeat(86)}`)).toBe(401);
});

test('401 for a token of which one part was changed', async () => {
  const token = await signed(claims());
  expect(await statusOf(token)).toBe(200);
  const [header, , signature] = token.split('.');
  expect(await statusOf(`${header}.${encode(claims({ sub: 'usr_other' }))}.${signature}`)).toBe(401);
  expect(await statusOf(`${token.slice(0, -6)}AAAAAA`)).toBe(401);
  expect(await statusOf(`${token}.`)).toBe(401);
  expect(await statusOf(`${header}.${signature}`)).toBe(401);
});

test('401 for bytes that are no token, and for endless ones', async () => {
  for (const token of [
    'x',
    '..',
    'a.b.c',
    `${'a'.repeat(5_000)}.b.c`,
    randomBytes(60).toString('base64'),
    '{}',
    '%00',
    'null',
  ]) {
    expect(await statusOf(token)).toBe(401);
  }
});

test('401 for a key in another case or with a wrong checksum, without a query to the database', async () => {
  const { key } = await api.identity.keys.create(userId, { name: 'k' });
  const { pool } = api.environment.database;
  const execute = pool.execute;
  let queries = 0;
  pool.execute = ((...args: Parameters<typeof execute>) => {
    queries += 1;
    return execute.apply(pool, args);
  }) as typeof execute;
  const last = key.at(-1) === 'a' ? 'b' : 'a';
  for (const bad of [
    key.toLowerCase(),
    key.toUpperCase(),
    `${key.slice(0, -1)}${last}`,
    `${key}x`,
    'atr_',
    key.slice(4),
  ]) {
    expect(await statusOf(bad)).toBe(401);
  }
  expect(queries).toBe(0);
  pool.execute = execute;
  expect(await statusOf(key)).toBe(200);
});

test('A signing key that an attacker copies in the database does not open', async () => {
  // An attacker who can write rows can add a public key. The private parts stay sealed, and a moved one does not open.
  const { pool } = api.environment.database;
  await pool.query(
    `INSERT INTO signing_keys (id, algorithm, public_jwk, private_jwk_sealed, created_at)
     SELECT 'sgk_zzz', algorithm, public_jwk, private_jwk_sealed, created_at FROM signing_keys WHERE id = ?`,
    [kid],
  );
  const { createIdentity, openEnvelope } = await import('../../../models/identity/index.ts');
  const { database, config } = api.environment;
  const fresh = createIdentity(database, await openEnvelope(database, config), config);
  await expect(fresh.signingKeys.current()).rejects.toThrow(/does not open/);
  await pool.query("DELETE FROM signing_keys WHERE id = 'sgk_zzz'");
});

test('401 at once for a revoked key, and for the key and the session of a disabled user', async () => {
  const { row, key } = await api.identity.keys.create(userId, { name: 'revoked' });
  expect(await statusOf(key)).toBe(200);
  await api.identity.keys.revoke(userId, row.id);
  expect(await statusOf(key)).toBe(401);
  const other = await buildUser(api.identity);
  const theirs = await api.identity.keys.create(other.user.id, { name: 'theirs' });
  const { pool } = api.environment.database;
  await pool.query('UPDATE users SET disabled_at = UTC_TIMESTAMP(3) WHERE id = ?', [other.user.id]);
  expect(await statusOf(theirs.key)).toBe(401);
  expect(await statusOf(other.token)).toBe(401);
});

// Mass assignment: fields of a row that clients must not set. They are refused with 400, or ignored.
const privileged = {
  id: 'own',
  userId: 'usr_other',
  ownerId: 'usr_other',
  role: 'owner',
  spaceId: 'spc_other',
  createdBy: 'usr_other',
  createdAt: '2000-01-01T00:00:00.000Z',
  disabledAt: null,
  scopes: ['*'],
  isAdmin: true,
  acceptedBy: 'usr_other',
  wasMailed: 1,
  balance: 1_000_000,
  // As JSON has it: a field with that name, and not the prototype of the object.
  ...(JSON.parse('{"__proto__": {"polluted": true}}') as object),
  constructor: { prototype: { polluted: true } },
};

test.each(
  loadContract()
    .operations.filter(({ bodyTypes, isPublic }) => bodyTypes.includes('application/json') && !isPublic)
    .map((operation) => [operation.id, operation] as const),
)('%s takes no field that a client must not set', async (id, operation) => {
  const { token, user } = await buildUser(api.identity);
  const { space } = await buildSpace(api.identity, user.id);
  const path = operation.path.replace('{spaceId}', space.id).replace(/\{[^}]+\}/g, 'absent');
  const verb = operation.method.toLowerCase() as 'post' | 'put' | 'patch';
  const response = await api.as(token)[verb](path, { name: 'A', title: 'A', ...privileged });
  expect([id, response.status < 500]).toEqual([id, true]);
  const answer = JSON.stringify(response.body);
  for (const stranger of ['usr_other', 'spc_other', '2000-01-01', 'polluted']) expect(answer).not.toContain(stranger);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  // Everything that was made belongs to the caller.
  const { pool } = api.environment.database;
  for (const table of ['space_members', 'api_keys', 'threads', 'sessions', 'dynamic_secrets']) {
    const [rows] = await pool.query(`SELECT 1 FROM ${table} WHERE user_id = 'usr_other'`);
    expect(rows).toEqual([]);
  }
});
