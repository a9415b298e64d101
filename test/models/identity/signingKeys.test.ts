import { createIdentity, openEnvelope } from '../../../models/identity/index.ts';
import { purgeIdentity } from '../../../models/identity/purge.ts';
import { buildIdentity, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;

beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

test('Processes that start at once on an empty database accept each other’s tokens', async () => {
  const processes = await Promise.all(Array.from({ length: 5 }, () => buildIdentity(environment)));
  const tokens = await Promise.all(processes.map(async (identity) => (await buildUser(identity)).token));
  for (const identity of processes) {
    for (const token of tokens) await expect(identity.sessions.authenticate(token)).resolves.toBeDefined();
  }
});

test('The private key is not in plain text in the database', async () => {
  const identity = await buildIdentity(environment);
  await identity.signingKeys.current();
  const [rows] = await environment.database.pool.query('SELECT * FROM signing_keys');
  for (const row of rows as { private_jwk_sealed: Buffer }[]) {
    expect(row.private_jwk_sealed.toString('latin1')).not.toMatch(/"d"|OKP|Ed25519/);
  }
});

test('After a key is retired, new tokens use another key, and old tokens stay valid until they expire', async () => {
  const here = await buildIdentity(environment);
  const before = await buildUser(here);
  const first = await here.signingKeys.current();
  await environment.database.pool.query('UPDATE signing_keys SET retired_at = UTC_TIMESTAMP(3)');
  const elsewhere = await buildIdentity(environment);
  const after = await buildUser(elsewhere);
  const second = await elsewhere.signingKeys.current();
  expect(second.id).not.toBe(first.id);
  expect(JSON.parse(Buffer.from(after.token.split('.')[0] ?? '', 'base64url').toString()).kid).toBe(second.id);
  for (const identity of [here, elsewhere]) {
    for (const { user, token } of [before, after]) {
      await expect(identity.sessions.authenticate(token)).resolves.toMatchObject({ userId: user.id });
    }
  }
  await environment.database.pool.query(
    'UPDATE signing_keys SET retired_at = DATE_SUB(UTC_TIMESTAMP(3), INTERVAL 13 HOUR) WHERE id = ?',
    [first.id],
  );
  const later = await buildIdentity(environment);
  await expect(later.sessions.authenticate(before.token)).rejects.toMatchObject({ code: 'INVALID_TOKEN' });
  await expect(later.sessions.authenticate(after.token)).resolves.toBeDefined();
});

test('A thousand unknown key ids cost only a few queries', async () => {
  const identity = await buildIdentity(environment);
  await identity.signingKeys.current();
  let queries = 0;
  const { sequelize } = environment.database;
  sequelize.addHook('beforeQuery', 'count', () => {
    queries++;
  });
  await Promise.all(
    Array.from({ length: 1_000 }, (_, i) => identity.signingKeys.publicKey(`sgk_${String(i).padStart(26, '0')}`)),
  );
  sequelize.removeHook('beforeQuery', 'count');
  expect(queries).toBeGreaterThan(0);
  expect(queries).toBeLessThan(10);
});

test('With another master key no signing key opens, and the error says what to restore', async () => {
  const { config, database } = environment;
  const other = { ...config, masterKey: Buffer.alloc(32, 9).toString('base64') };
  const identity = createIdentity(database, await openEnvelope(database, other), other);
  await expect(identity.signingKeys.current()).rejects.toThrow(/another master key.*Restore/s);
});

test('A sealed private key moved to another row does not open', async () => {
  const envelope = await openEnvelope(environment.database, environment.config);
  const sealed = await envelope.seal('system', 'signing_keys/sgk_1', Buffer.from('private'));
  await expect(envelope.open('system', 'signing_keys/sgk_2', sealed)).rejects.toThrow(/does not open/);
  await expect(envelope.open('spc_1', 'signing_keys/sgk_1', sealed)).rejects.toThrow();
});

test('Expired codes and sessions are purged, and valid ones are kept', async () => {
  const identity = await buildIdentity(environment);
  const { user, token } = await buildUser(identity);
  const { code } = await identity.codes.create(user.id);
  const old = await buildUser(identity);
  await identity.codes.create(old.user.id);
  const { pool } = environment.database;
  await pool.query('UPDATE auth_codes SET expires_at = DATE_SUB(expires_at, INTERVAL 1 DAY) WHERE user_id = ?', [
    old.user.id,
  ]);
  await pool.query('UPDATE sessions SET expires_at = DATE_SUB(expires_at, INTERVAL 31 DAY) WHERE user_id = ?', [
    old.user.id,
  ]);
  expect(await purgeIdentity(environment.database, new Date())).toBe(2);
  await expect(identity.sessions.authenticate(token)).resolves.toBeDefined();
  await expect(identity.codes.exchange(code)).resolves.toMatch(/^ey/);
});
