import { placeholderVariables } from '../../../models/computers/placeholders.ts';
import { askToDelete } from '../../../models/computers/wishes.ts';
import { buildApi, type Client, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

let api: TestApi;

beforeAll(async () => {
  api = await buildApi();
});
afterAll(() => api.close());

async function owner(): Promise<{
  as: Client;
  spaceId: string;
  computerId: string;
  space: string;
  path: string;
  userId: string;
}> {
  const { user, token } = await buildUser(api.identity);
  const { space } = await buildSpace(api.identity, user.id);
  const [as, at] = [api.as(token), `/api/spaces/${space.id}`];
  const { computerId } = (await as.get(`${at}/computers/status`)).body as { computerId: string };
  await as.put(`${at}/secrets/TOKEN`, { value: 'the value of TOKEN' });
  return {
    as,
    userId: user.id,
    spaceId: space.id,
    computerId,
    space: at,
    path: `${at}/computers/${computerId}/secrets`,
  };
}

const codeOf = (response: { status: number; body: { code?: string } }) => [response.status, response.body.code];
const models = () => api.deps.computerSecrets;

test('A computer gets a placeholder for a secret, which stays the same through changes until it is removed', async () => {
  const { as, path, space, computerId } = await owner();
  const made = await as.put(`${path}/TOKEN`, { hosts: ['api.example.com'] });
  expect([made.status, made.body]).toEqual([
    201,
    expect.objectContaining({ name: 'TOKEN', variable: 'TOKEN', hosts: ['api.example.com'], inUrl: false }),
  ]);
  const { TOKEN: placeholder } = await placeholderVariables(api.environment.database, computerId);
  expect(placeholder).toMatch(/^atrium_secret_[0-9a-f]{40}$/);
  const [placed] = await models().placed(computerId);
  expect(await placed?.value()).toBe('the value of TOKEN');

  const changed = { hosts: ['*.example.com:8443'], variable: 'API_KEY', inUrl: true };
  expect((await as.put(`${path}/TOKEN`, changed)).status).toBe(200);
  expect(await placeholderVariables(api.environment.database, computerId)).toEqual({ API_KEY: placeholder });
  const list = await as.get(path);
  expect(list.body).toMatchObject({ data: [{ name: 'TOKEN', ...changed }] });
  expect(JSON.stringify(list.body)).not.toMatch(/atrium_secret_|the value/);

  await as.put(`${space}/secrets/TOKEN`, { value: 'another value' });
  expect(await placed?.value()).toBe('another value');
  await as.delete(`${space}/secrets/TOKEN`);
  expect(await placed?.value()).toBeUndefined();
  expect((await as.delete(`${path}/TOKEN`)).status).toBe(204);
  expect(codeOf(await as.delete(`${path}/TOKEN`))).toEqual([404, 'NOT_FOUND']);
  expect(await models().placed(computerId)).toEqual([]);
});

test.each([
  'api.example.com.evil..com',
  '93.184.215.14',
  '10.0.0.0/8',
  '[::1]',
  '*',
  '*.com',
  '*.93.184.215.14',
  'https://api.example.com',
  'api.example.com/path',
])('422 for a secret that is for %s', async (host) => {
  const { as, path } = await owner();
  const refused = await as.put(`${path}/TOKEN`, { hosts: ['api.example.com', host] });
  expect(codeOf(refused)).toEqual([422, 'SECRET_HOST_INVALID']);
  expect(refused.body).toMatchObject({ errors: [{ pointer: '/hosts/1' }] });
});

test('Unknown secrets, taken or reserved variables, and computers of other spaces are refused', async () => {
  const { as, path, space } = await owner();
  const other = await owner();
  const body = { hosts: ['api.example.com'] };
  expect(codeOf(await as.put(`${path}/UNKNOWN`, body))).toEqual([404, 'NOT_FOUND']);
  expect((await as.put(`${space}/computers/${other.computerId}/secrets/TOKEN`, body)).status).toBe(404);
  expect((await as.get(`${space}/computers/${other.computerId}/secrets`)).status).toBe(404);
  expect(codeOf(await as.put(`${path}/TOKEN`, { ...body, variable: 'LD_PRELOAD' }))).toEqual([
    422,
    'RESERVED_SECRET_NAME',
  ]);
  await as.put(`${path}/TOKEN`, body);
  await as.put(`${space}/secrets/SECOND`, { value: 'second value' });
  expect(codeOf(await as.put(`${path}/SECOND`, { ...body, variable: 'TOKEN' }))).toEqual([409, 'VARIABLE_TAKEN']);
  expect((await as.put(`${path}/TOKEN`, { hosts: [] })).status).toBe(400);
});

test('Deleting a computer removes its secrets', async () => {
  const { as, path, computerId, spaceId, userId } = await owner();
  await as.put(`${path}/TOKEN`, { hosts: ['api.example.com'] });
  await askToDelete(api.deps, { spaceId, computerId, actor: { userId, credentialId: null, address: null } });
  expect(await models().placed(computerId)).toEqual([]);
  const kept = 'SELECT name FROM computer_secrets WHERE computer_id = ?';
  const [rows] = await api.environment.database.pool.query(kept, [computerId]);
  expect(rows).toEqual([]);
  expect((await as.put(`${path}/TOKEN`, { hosts: ['api.example.com'] })).status).toBe(404);
});
