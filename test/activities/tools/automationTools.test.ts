import { automationsOf } from '../../builders/automations.ts';
import { asUser, type ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { collect } from '../../support/sseClient.ts';

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

const work = { modelId: 'demo', mode: 'work' };
const input = { name: 'Watch', prompt: '/say watched', cron: '0 8 * * *', timeZone: 'UTC' };

/** Lets the agent call a tool, and answers its requests for approval with `approved`. */
async function call(name: string, args: object, approved = true, as = user) {
  const { turnId, threadId } = await as.ask({ content: `/tool ${name} ${JSON.stringify(args)}`, ...work });
  const { pendingToolCalls } = await as.turn(turnId);
  for (const { toolCallId } of pendingToolCalls) {
    await as.fetch(`/chat/turns/${turnId}/approvals/${toolCallId}`, { method: 'POST', body: { approved } });
  }
  await as.ended(turnId);
  const { chunks } = await collect(await as.open(`/chat/turns/${turnId}/stream`));
  return { turnId, threadId, asked: pendingToolCalls.length, output: toolOutputs(chunks)[0] as never };
}

test('An agent makes an automation if its user approves, and the automation names the turn that made it', async () => {
  const own = automationsOf(user);
  const refused = await call('automation_create', input, false);
  expect(refused.asked).toBe(1);
  expect((await own.send<{ data: object[] }>('GET', '')).data).toEqual([]);

  const made = await call('automation_create', input);
  expect(made.output).toMatchObject({ id: expect.stringMatching(/^atm_/), nextRunAt: expect.any(String) });
  const { id } = made.output as { id: string };
  expect(await own.get(id)).toMatchObject({
    ...{ name: 'Watch', mode: 'ask', createdBy: { userId: user.id, turnId: made.turnId } },
    schedule: { cron: '0 8 * * *', timeZone: 'UTC' },
  });
  await own.run(id);
  expect(await own.ended(id)).toMatchObject([{ status: 'completed' }]);

  const here = await call('automation_create', {
    name: 'Here',
    prompt: '/say x',
    at: '2040-01-01T00:00:00Z',
    here: true,
  });
  const { id: hereId } = here.output as { id: string };
  expect(await own.get(hereId)).toMatchObject({ threadId: here.threadId, nextRunAt: '2040-01-01T00:00:00.000Z' });
});

test.each([
  ['neither time', { name: 'a', prompt: 'b' }, 'either `cron`'],
  ['a cron without a zone', { name: 'a', prompt: 'b', cron: '0 8 * * *' }, 'either `cron`'],
  ['too often', { name: 'a', prompt: 'b', cron: '* * * * *', timeZone: 'UTC' }, 'runs too often'],
  ['a time that is none', { name: 'a', prompt: 'b', at: 'tomorrow' }, 'is not a time'],
])('An invalid automation is refused with an explanation: %s', async (_what, args, words) => {
  expect((await call('automation_create', args)).output).toContain(words);
});

test('An agent lists all automations of its user and deletes only those that it made', async () => {
  const other = await product.user();
  const own = automationsOf(other);
  const byHand = await own.make({ name: 'By hand' });
  const { output } = await call('automation_create', input, true, other);
  const { id } = output as { id: string };
  expect((await call('automation_list', {}, true, other)).output).toMatchObject({
    automations: [
      { id: byHand.id, madeByYou: false },
      { id, name: 'Watch', madeByYou: true, enabled: true },
    ],
  });
  expect((await call('automation_delete', { id: byHand.id }, true, other)).output).toContain(
    'The user created this automation',
  );
  expect((await call('automation_delete', { id }, true, other)).output).toEqual({ id, deleted: true });
  expect((await call('automation_delete', { id: byHand.id })).output).toContain('There is no such automation');
  const { data } = await own.send<{ data: { id: string }[] }>('GET', '');
  expect(data.map((one) => one.id)).toEqual([byHand.id]);
});

test('An automation made by an agent has no more rights than the turn that made it', async () => {
  const person = await product.user();
  const made = await person.fetch('/api/keys', {
    method: 'POST',
    body: { name: 'bot', scopes: ['chat', 'approvals'] },
  });
  const { key } = (await made.json()) as { key: string };
  const bot = asUser(product, { ...person, token: key });
  const { output } = await call('automation_create', input, true, bot);
  const { id } = output as { id: string };
  await automationsOf(person).run(id);
  const [run] = await automationsOf(person).ended(id);
  expect(await person.turn(run?.turnId ?? '')).toMatchObject({ scopes: ['chat', 'approvals'] });
  // Mode `ask` does not offer the tool.
  const { chunks } = await person.ask({
    content: toolLines([['automation_create', input]]),
    modelId: 'demo',
    mode: 'ask',
  });
  expect(JSON.stringify(toolOutputs(chunks))).toContain('automation_create');
  expect((await automationsOf(person).send<{ data: object[] }>('GET', '')).data).toHaveLength(1);
});
