import { openEnvelope } from '../../../models/identity/index.ts';
import { mostForms } from '../../../models/secrets/redactor.ts';
import { createRedactors } from '../../../models/secrets/redactors.ts';
import { secretForms } from '../../../telemetry/secretForms.ts';
import { sliceLength } from '../../../telemetry/slices.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';
import { sqlOf } from '../../support/recordStatements.ts';

let api: TestApi;
beforeAll(async () => {
  api = await buildApi();
});
afterAll(() => api.close());

async function person() {
  const { user } = await buildUser(api.identity);
  const { space } = await buildSpace(api.identity, user.id);
  const actor = { userId: user.id, credentialId: null, address: null };
  const type = (value: unknown) =>
    api.deps.secrets.dynamic.store(space.id, { name: 'form', field: 'field', value, ttl: '1h' }, actor);
  const put = (name: string, value: string) => api.deps.secrets.named.put(space.id, name, value, actor);
  return { spaceId: space.id, type, put };
}

/** Redactors that record the slices of their work, with a counter of the reads of a space's values. */
async function counting() {
  const { database, config } = api.environment;
  const slices: number[] = [];
  const redactors = createRedactors(database, await openEnvelope(database, config), async (work) => {
    slices.push(work);
  });
  const query = jest.spyOn(database.pool, 'query');
  const builds = () => query.mock.calls.filter(([sql]) => sqlOf(sql).startsWith('SELECT name, sealed')).length;
  return { redactors, slices, builds, stop: () => query.mockRestore() };
}

/** 63 KB of text in three bytes for each character, which has very many forms. */
const large = (seed: number) =>
  Array.from({ length: 21_000 }, (_none, n) => String.fromCharCode(0x4e00 + ((n * 7_919 + seed) % 20_000))).join('');

test('The redactor of a space is built once for all callers, and again only when a secret has changed', async () => {
  const { spaceId, type, put } = await person();
  await type('typed-secret');
  const { redactors, builds, stop } = await counting();
  const asked = await Promise.all(Array.from({ length: 10 }, () => redactors.forSpace(spaceId)));
  expect(new Set([...asked, await redactors.forSpace(spaceId)]).size).toBe(1);
  expect(builds()).toBe(1);
  await put('NAMED', 'named-secret');
  // Callers that come during the build share the new one.
  const others = await Promise.all(Array.from({ length: 10 }, () => redactors.forSpace(spaceId)));
  expect(new Set(others).size).toBe(1);
  expect(builds()).toBe(2);
  expect(others[0]?.text('typed-secret named-secret')).toBe('[redacted] [redacted]');
  expect(asked[0]?.text('named-secret')).toBe('named-secret');
  stop();
});

test('A secret that changes during a build is in the redactor that is requested afterwards', async () => {
  const { spaceId, put } = await person();
  await put('A', 'first-secret');
  const { redactors, stop } = await counting();
  const before = redactors.forSpace(spaceId);
  await put('B', 'second-secret');
  expect((await redactors.forSpace(spaceId)).text('first-secret second-secret')).toBe('[redacted] [redacted]');
  expect((await before).text('first-secret')).toBe('[redacted]');
  stop();
});

test('a space full of the largest values gives a limited number of forms, in short slices', async () => {
  const { spaceId, type, put } = await person();
  const values = Array.from({ length: 8 }, (_none, n) => large(n * 31));
  for (const [index, value] of values.entries()) await (index < 4 ? type(value) : put(`LARGE_${index}`, value));
  await put('SMALL', 'a-small-secret');
  const { redactors, slices, stop } = await counting();
  const redactor = await redactors.forSpace(spaceId);
  const most = mostForms.named + mostForms.typed + values.length * Math.ceil(21_000 / 64);
  expect(redactor.bytes.forms.length).toBeLessThan(most * 4);
  expect(slices.length).toBeGreaterThan(10);
  expect(Math.max(...slices)).toBeLessThanOrEqual(sliceLength + 65_536);
  expect(slices.reduce((sum, work) => sum + work, 0)).toBeLessThan(most * 64 * 12);
  for (const value of values) expect(redactor.text(`<${value}>`)).toBe('<[redacted]>');
  for (const form of secretForms('a-small-secret')) expect(redactor.text(`<${form}>`)).toBe('<[redacted]>');
  stop();
});
