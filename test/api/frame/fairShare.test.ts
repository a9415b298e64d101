import mysql from 'mysql2/promise';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

let api: TestApi;
beforeAll(async () => {
  api = await buildApi();
});
afterAll(() => api.close());

test('One user’s many requests that wait in the database do not delay the answers of others', async () => {
  const { identity, environment } = api;
  const [busy, other] = [await buildUser(identity), await buildUser(identity)];
  const { space } = await buildSpace(identity, busy.user.id);
  const blocker = await mysql.createConnection(environment.config.database.url);
  await blocker.beginTransaction();
  await blocker.query('SELECT id FROM spaces WHERE id = ? FOR UPDATE', [space.id]);

  // More requests than connections to the database.
  const count = 3 * environment.config.database.poolSize;
  let answered = 0;
  const requests = Array.from({ length: count }, async (_, index) => {
    const response = await api.as(busy.token).patch(`/api/spaces/${space.id}`, { name: `Name ${index}` });
    answered++;
    return response.status;
  });
  for (let index = 0; index < 20; index++) {
    expect((await api.as(other.token).get('/api/me')).status).toBe(200);
  }
  expect(answered).toBe(0);
  await blocker.rollback();
  await blocker.end();
  expect(new Set(await Promise.all(requests))).toEqual(new Set([200]));
});
