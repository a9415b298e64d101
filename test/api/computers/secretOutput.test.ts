import { asUser } from '../../builders/chat.ts';
import { buildComputer, buildHostingProduct, computerOf, type TestComputer } from '../../builders/computer.ts';
import { buildUser } from '../../builders/identity.ts';
import type { TestProduct } from '../../builders/product.ts';
import { waitFor } from '../../support/waitFor.ts';

const secret = 'hunter2-hunter2';
const mask = '*'.repeat(secret.length);

let product: TestProduct;
let computer: TestComputer;
let viewer: TestComputer;
let byKey: TestComputer;
beforeAll(async () => {
  product = await buildHostingProduct();
  computer = await buildComputer(product);
  const { user: owner } = computer;
  await owner.fetch(`/api/spaces/${owner.spaceId}/secrets/TOKEN`, { method: 'PUT', body: { value: secret } });
  const { user, token } = await buildUser(product.identity);
  await product.identity.members.add(owner.spaceId, user.email, 'viewer');
  const { id, email } = user;
  viewer = computerOf(asUser(product, { id, email, token, spaceId: owner.spaceId }), computer.id);
  const { key } = await product.identity.keys.create(owner.id, { name: 'key', scopes: ['computers:read'] });
  byKey = computerOf(asUser(product, { ...owner, token: key }), computer.id);
});
afterAll(() => product.close());

const asEvents = { headers: { accept: 'text/event-stream' } };
const start = (body: object) => computer.expect<{ id: string; command: unknown }>(201, 'POST', '/processes', body);

test('Output is masked for every reader, in every way of reading and from every position', async () => {
  // The secret is printed in two pieces, with the other stream between them.
  const command = `printf 'a hunter2'; sleep 0.3; echo err >&2; sleep 0.3; printf '%s b\\n' -hunter2; echo ${secret}`;
  const answer = await computer.exec(command);
  expect(answer).toMatchObject({ stdout: `a ${mask} b\n${mask}\n`, stderr: 'err\n', exitCode: 0 });
  const streamed = await computer.fetch('/exec', { method: 'POST', body: { command }, ...asEvents });
  const { id, command: shown } = await start({ command });
  expect(shown).toBe(command.replace(secret, '[redacted]'));
  const live = await viewer.fetch(`/processes/${id}/output`, asEvents);
  const whole = `a *******err\n******** b\n${mask}\n`;
  for (const response of [streamed, live]) {
    const text = await response.text();
    expect(text).not.toMatch(/hunter2/);
    expect(text).toContain('event: exit');
    const events = [...text.matchAll(/"text":("[^\n]*")\}/g)].map(([, json]) => JSON.parse(json ?? '') as string);
    expect(events.join('')).toBe(whole);
  }
  for (const reader of [computer, viewer, byKey]) {
    for (let after = 0; after <= whole.length; after++) {
      const response = await reader.fetch(`/processes/${id}/output?after=${after}`);
      expect(await response.text()).toBe(whole.slice(after));
    }
    const process = await reader.expect<{ command: string; outputBytes: number }>(200, 'GET', `/processes/${id}`);
    expect(process).toMatchObject({ command: shown, outputBytes: whole.length });
    expect(await (await reader.fetch('/processes')).text()).not.toContain(secret);
  }
});

test('Only editors can read the output of a terminal', async () => {
  const { id } = await start({ command: `printf 'hunter2\\033[0m-hunter2'; sleep 300`, pty: { cols: 80, rows: 24 } });
  await waitFor('output', async () => {
    const { outputBytes } = await computer.expect<{ outputBytes: number }>(200, 'GET', `/processes/${id}`);
    return outputBytes > 0;
  });
  for (const init of [{}, asEvents]) {
    const [looking, reading] = [viewer, byKey].map((reader) => reader.fetch(`/processes/${id}/output`, init));
    expect([(await looking)?.status, await (await looking)?.json()]).toEqual([
      403,
      expect.objectContaining({ code: 'ROLE_TOO_LOW', detail: expect.stringContaining('terminal') }),
    ]);
    expect([(await reading)?.status, await (await reading)?.json()]).toEqual([
      403,
      expect.objectContaining({ code: 'INSUFFICIENT_SCOPE', detail: expect.stringContaining('terminal') }),
    ]);
  }
  expect(await (await computer.fetch(`/processes/${id}/output`)).text()).toContain('hunter2');
  await computer.expect(204, 'POST', `/processes/${id}/signal`, { signal: 'SIGKILL' });
});
