import { readFileSync } from 'node:fs';
import { buildApi, type TestApi } from '../builders/api.ts';
import { buildUser } from '../builders/identity.ts';
import { runAtrium } from '../support/atrium.ts';
import { waitFor } from '../support/waitFor.ts';

// The operator lists and revokes at the command line, while an API serves the same installation.

let api: TestApi;

beforeAll(async () => {
  api = await buildApi();
});
afterAll(() => api.close());

type Json = Record<string, unknown>;

const run = (...args: string[]) => runAtrium(args, api.environment.environment);
async function json<Answer = Json>(...args: string[]): Promise<Answer> {
  const { code, stdout, output } = await run(...args, '--json');
  if (code !== 0) throw new Error(output);
  return JSON.parse(stdout) as Answer;
}
const status = async (token: string, path: string) => (await api.as(token).get(path)).status;

test('the operator lists users, spaces, keys and sessions in pages', async () => {
  const ada = await buildUser(api.identity, 'ada');
  const bob = await buildUser(api.identity, 'bob');
  const { space } = await api.identity.spaces.create(ada.user.id, 'Work of Ada');
  await api.identity.members.add(space.id, bob.user.email, 'editor');
  const { row } = await api.identity.keys.create(bob.user.id, { name: 'for the nightly job', scopes: ['drive:read'] });

  const users = await json<Json[]>('user', 'list');
  expect(users).toContainEqual(
    expect.objectContaining({ id: bob.user.id, email: bob.user.email, spaces: 1, disabledAt: null }),
  );
  expect(await json<Json[]>('space', 'list')).toContainEqual(
    expect.objectContaining({ id: space.id, name: 'Work of Ada', owners: [ada.user.email], members: 2 }),
  );
  expect(await json<Json[]>('key', 'list', '--user', bob.user.email)).toEqual([
    expect.objectContaining({
      id: row.id,
      email: bob.user.email,
      scopes: ['drive:read'],
      hint: row.hint,
      lastUsedAt: null,
    }),
  ]);
  expect(JSON.stringify(await json('key', 'list'))).not.toContain('hash');
  const sessions = await json<Json[]>('session', 'list', '--user', ada.user.email);
  expect(sessions).toEqual([expect.objectContaining({ email: ada.user.email })]);

  const [first] = await json<{ id: string }[]>('user', 'list', '--limit', '1');
  const rest = await json<{ id: string }[]>('user', 'list', '--after', first?.id ?? '');
  expect([first, ...rest]).toEqual(users);
  const { stdout } = await run('user', 'list', '--limit', '1');
  expect(stdout).toMatch(new RegExp(`^  ${first?.id}  .*\\nThere may be more: --after ${first?.id}\\n$`));
  expect((await run('space', 'list')).stdout).toMatch(/ {2}2 members, since \d{4}-\d\d-\d\d {2}Work of Ada\n/);
  expect(await run('user', 'list', '--limit', 'all')).toMatchObject({ code: 1, stdout: '' });
});

test('a disabled user has no access until the operator enables them', async () => {
  const { user, token } = await buildUser(api.identity, 'leaves');
  const { space } = await api.identity.spaces.create(user.id, 'Left');
  const path = `/api/spaces/${space.id}`;
  const { key } = await api.identity.keys.create(user.id, { name: 'k' });
  expect([await status(token, path), await status(key, path)]).toEqual([200, 200]);

  expect(await json('user', 'disable', user.email)).toEqual({ id: user.id, disabled: true, changed: true });
  expect(await json('user', 'disable', user.email)).toMatchObject({ changed: false });
  await waitFor('both refusals', async () => (await status(token, path)) + (await status(key, path)) === 802);
  await waitFor('no access', async () => (await api.identity.members.access(space.id, user.id)) === undefined);
  const refused = { code: 1, output: `${user.email} is disabled: npm run -s atrium -- user enable ${user.email}\n` };
  expect(await run('token', '--user', user.email)).toMatchObject(refused);
  expect(await run('key', 'create', '--user', user.email)).toMatchObject(refused);
  expect((await run('user', 'list')).stdout).toMatch(new RegExp(`${user.email} .*, disabled \\d{4}-`));

  expect(await json('user', 'enable', user.email)).toEqual({ id: user.id, disabled: false, changed: true });
  await waitFor('the key to work again', async () => (await status(key, path)) === 200);
  // Sessions from before stay ended, so the user signs in again.
  expect(await status(token, path)).toBe(401);
  const { body } = await api.as(key).get(`${path}/audit`);
  const actions = body.data.map(({ action, userId }: { action: string; userId: string | null }) => [action, userId]);
  expect(actions.slice(0, 2)).toEqual([
    ['user.enabled', null],
    ['user.disabled', null],
  ]);
  expect(await run('user', 'disable', 'nobody@example.org')).toMatchObject({ code: 1 });
});

test('the operator revokes a key and a session by id, and a second attempt fails', async () => {
  const { user, token } = await buildUser(api.identity, 'revoked');
  const { key, row } = await api.identity.keys.create(user.id, { name: 'k' });
  const [session] = await json<{ id: string }[]>('session', 'list', '--user', user.email);
  for (const [kind, id] of [
    ['key', row.id],
    ['session', session?.id ?? ''],
  ] as const) {
    expect(await json(kind, 'revoke', id)).toEqual({ id });
    expect(await run(kind, 'revoke', id)).toMatchObject({
      code: 1,
      output: expect.stringContaining(`no ${kind === 'key' ? 'API key' : kind} ${id}`),
    });
  }
  await waitFor('both refusals', async () => (await status(token, '/api/me')) + (await status(key, '/api/me')) === 802);
});

test('a space is deleted only with --yes, and then answers 404', async () => {
  const { user, token } = await buildUser(api.identity, 'deletes');
  const { space } = await api.identity.spaces.create(user.id, 'To be deleted');
  expect(await run('space', 'delete', space.id)).toMatchObject({ code: 1, output: expect.stringContaining('--yes') });
  expect(await status(token, `/api/spaces/${space.id}`)).toBe(200);

  const { operationId } = await json<{ operationId: string }>('space', 'delete', space.id, '--yes');
  expect(operationId).toMatch(/^op_/);
  await waitFor('the space to be gone', async () => (await status(token, `/api/spaces/${space.id}`)) === 404);
  expect(await run('space', 'delete', space.id, '--yes')).toMatchObject({
    code: 1,
    output: `There is no space ${space.id}.\n`,
  });
});

test('--version prints the version of the package', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect((await run('--version')).stdout).toBe(`${version}\n`);
});
