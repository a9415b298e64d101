import { createEgressRules } from '../../models/egress/egressRules.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

let environment: TestEnvironment;

beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

const entry = (host: string) => ({ purpose: 'computer', host, port: 443, address: null, refusal: 'no' });

test('The egress log of each space keeps its own newest entries and names secrets that were sent', async () => {
  const rules = createEgressRules(environment.database);
  const [busy, quiet] = [await rules.owner('spc_busy', 'computer'), await rules.owner('spc_quiet', 'computer')];
  for (let index = 0; index < 7; index++) await busy.record(entry(`h${index}.example`));
  await busy.record({ ...entry('h7.example'), secret: 'TOKEN' });
  for (let index = 0; index < 3; index++) await quiet.record(entry(`q${index}.example`));
  expect(await rules.purge(new Date(), 3)).toBe(5);
  const kept = async (spaceId: string) =>
    (await rules.list(spaceId, { limit: 10 })).data.map(({ host, secret }) => [host, secret]);
  expect(await kept('spc_busy')).toEqual([
    ['h7.example', 'TOKEN'],
    ['h6.example', null],
    ['h5.example', null],
  ]);
  expect(await kept('spc_quiet')).toHaveLength(3);
  expect(await rules.purge(new Date(), 3)).toBe(0);
  expect(await rules.purge(new Date(Date.now() + 31 * 86_400_000))).toBe(6);
});
