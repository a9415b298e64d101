import { asUser, type ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { runAtrium } from '../../support/atrium.ts';
import { waitFor } from '../../support/waitFor.ts';

// Runs `atrium rotate-key`, as an operator does, beside a running Atrium, whose clients must notice nothing.

let product: TestProduct;
const rounds = 2;

beforeAll(async () => {
  // The master key is a file in the data directory.
  product = await buildProduct({ ATRIUM_MASTER_KEY: '' });
});
afterAll(() => product.close());

async function readAndWrite(user: ChatUser, state: { stop: boolean; done: number; failed: string[] }): Promise<void> {
  const space = `/api/spaces/${user.spaceId}`;
  for (let turn = 0; !state.stop; turn++) {
    const note = async (what: string, response: Response) => {
      if (!response.ok) state.failed.push(`${what}: ${response.status} ${await response.text()}`);
      return response;
    };
    const body = { value: `value-${turn}` };
    await note('set', await user.fetch(`${space}/secrets/A`, { method: 'PUT', body }));
    const env = await note('env', await user.fetch(`${space}/secrets/env`));
    const { secrets } = (await env.json()) as { secrets: string[] };
    if (secrets[0] !== `export A='value-${turn}'`) state.failed.push(`${turn} is ${secrets[0]}`);
    // Two more values that are sealed and opened: the signing key of a session, and the value of a form.
    const form = { name: 'f', field: 'p', value: turn, spaceId: user.spaceId };
    await note('form', await user.fetch('/api/dynamic-ui/secrets', { method: 'POST', body: form }));
    const token = await product.identity.sessions.create(user.id);
    await note('session', await asUser(product, { ...user, token }).fetch('/api/me'));
    state.done += 1;
  }
}

test('no request fails while all keys are rotated, twice', async () => {
  const state = { stop: false, done: 0, failed: [] as string[] };
  const users = await Promise.all([product.user(), product.user(), product.user()]);
  const traffic = users.map((user) => readAndWrite(user, state));
  const masterKeys: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const { code, stdout } = await runAtrium(['rotate-key', '--json'], product.environment.environment);
    expect(code).toBe(0);
    masterKeys.push((JSON.parse(stdout) as { masterKeyId: string }).masterKeyId);
    const seen = state.done;
    await waitFor('more traffic', () => state.done > seen + 10);
  }
  state.stop = true;
  await Promise.all(traffic);
  expect(state.failed).toEqual([]);
  expect(new Set(masterKeys).size).toBe(rounds);
  // A process that knows none of the former keys can open everything.
  await product.process.stop();
  await product.restart();
  for (const user of users) {
    const { secrets } = await user.get<{ secrets: string[] }>(`/api/spaces/${user.spaceId}/secrets/env`);
    expect(secrets).toEqual([expect.stringMatching(/^export A='value-\d+'$/)]);
  }
});
