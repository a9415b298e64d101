import { transaction } from '../../../models/database/database.ts';
import { purgeIdentity } from '../../../models/identity/purge.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

// The sweeper deletes what can no longer be used, and keeps what still counts.

let product: TestProduct;
let user: ChatUser;

beforeAll(async () => {
  product = await buildProduct(hurriedSweeper);
  user = await product.user();
});
afterAll(() => product.close());

const query = async (sql: string, values: unknown[] = []) =>
  (await product.environment.database.pool.query(sql, values))[0] as Record<string, unknown>[];

async function countOf(table: string, where: string, value: string): Promise<number> {
  const [row] = await query(`SELECT COUNT(*) AS n FROM ${table} WHERE ${where} = ?`, [value]);
  return Number(row?.n);
}

const ago = (days: number) => new Date(Date.now() - days * 86_400_000);

test('the sweeper removes expired codes, sign-ins, mails, sessions, invitations, keys and form secrets', async () => {
  const { identity, environment } = product;
  const { spaceId } = user;
  const actor = { userId: user.id, credentialId: null, address: null };
  await identity.codes.create(user.id);
  await identity.pendingSignIns.begin('email', 'token', { email: user.email });
  const mail = await identity.mails.seal({ to: 'a@example.com', subject: 's', text: 't' }, ago(1));
  await transaction(environment.database, (tx) => identity.mails.store(tx, mail));
  const invite = (email: string) =>
    identity.invitations.create(
      spaceId,
      { email, role: 'viewer', token: email, isMailed: false },
      actor,
      async () => undefined,
    );
  const [old, young] = [await invite('old@example.com'), await invite('young@example.com')];
  await identity.sessions.create(user.id);
  const [session] = (await identity.sessions.list(user.id, { limit: 1 })).data;
  const dead = await identity.keys.create(user.id, { name: 'dead' });
  const parent = await identity.keys.create(user.id, { name: 'parent' });
  const madeWith = { keyId: parent.row.id, scopes: ['*'], expiresAt: null };
  const child = await identity.keys.create(user.id, { name: 'child', madeWith });
  const form = await user.fetch('/api/dynamic-ui/secrets', {
    method: 'POST',
    body: { name: 'f', field: 'p', value: 'v', spaceId, ttl: '30s' },
  });
  const { secretId } = (await form.json()) as { secretId: string };

  await query('UPDATE auth_codes SET expires_at = ? WHERE user_id = ?', [ago(1), user.id]);
  await query('UPDATE sign_ins SET expires_at = ?', [ago(1)]);
  await query('UPDATE invitations SET expires_at = ? WHERE id = ?', [ago(31), old.id]);
  await query('UPDATE sessions SET expires_at = ? WHERE id = ?', [ago(31), session?.id]);
  await query('UPDATE api_keys SET revoked_at = ? WHERE id = ?', [ago(31), dead.row.id]);
  // This key has a living child. A revocation goes from parent to child, so the parent must stay.
  await query('UPDATE api_keys SET expires_at = ? WHERE id = ?', [ago(31), parent.row.id]);
  await query('UPDATE dynamic_secrets SET expires_at = ? WHERE id = ?', [ago(1), secretId]);

  const gone: [string, string, string][] = [
    ['auth_codes', 'user_id', user.id],
    ['sign_ins', 'kind', 'email'],
    ['mails', 'id', mail.id],
    ['invitations', 'id', old.id],
    ['sessions', 'id', session?.id ?? ''],
    ['api_keys', 'id', dead.row.id],
    ['dynamic_secrets', 'id', secretId],
  ];
  await waitFor('the sweeper', async () => {
    const counts = await Promise.all(gone.map(([table, where, value]) => countOf(table, where, value)));
    return counts.every((count) => count === 0);
  });
  const kept = [
    countOf('invitations', 'id', young.id),
    countOf('api_keys', 'id', parent.row.id),
    countOf('api_keys', 'id', child.row.id),
  ];
  expect(await Promise.all(kept)).toEqual([1, 1, 1]);
  expect(await purgeIdentity(environment.database, new Date())).toBe(0);
  expect((await user.fetch('/api/me')).status).toBe(200);
});

test('The sweeper removes all rows, also when one statement does not take them all', async () => {
  const rows = Array.from({ length: 2_500 }, (_, i) => [
    Buffer.from(`${i}`.padStart(32, 'x')),
    user.id,
    ago(2),
    ago(1),
    null,
  ]);
  await query('INSERT INTO auth_codes (hash, user_id, created_at, expires_at, used_at) VALUES ?', [rows]);
  await waitFor('the sweeper', async () => (await countOf('auth_codes', 'user_id', user.id)) === 0);
});
