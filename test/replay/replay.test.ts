import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type SavedHistory, savedHistories } from './histories.ts';
import { foreignTexts } from './payloads.ts';
import { scenarios } from './scenarios/scenario.ts';

const workflows = join(import.meta.dirname, '..', '..', 'workflows', 'index.ts');

async function replay(workflowsPath: string, histories: SavedHistory[]): Promise<Record<string, string>> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'replay.ts'), workflowsPath]);
  child.stdin.end(JSON.stringify(histories));
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  if (output === '') throw new Error(errors);
  return JSON.parse(output.split('\n').at(-1) ?? '') as Record<string, string>;
}

test('The present workflows can replay every saved history', async () => {
  const histories = await savedHistories();
  expect(histories.length).toBeGreaterThan(0);
  expect(await replay(workflows, histories)).toEqual({});
});

test('The replay finds a change that would break running workflows', async () => {
  const histories = (await savedHistories()).filter(({ name }) => name === 'runChatTurn/answered');
  const failures = await replay(join(import.meta.dirname, 'changedWorkflows.ts'), histories);
  expect(failures).toEqual({ 'runChatTurn/answered': expect.stringContaining('DeterminismViolationError') });
});

test('Each workflow and each scenario has a saved history', async () => {
  const saved = (await savedHistories()).map(({ name }) => name);
  expect(saved).toEqual(scenarios.map(({ name }) => name).sort());
  const exported = [...readFileSync(workflows, 'utf8').matchAll(/export \{ (\w+)/g)].map(([, name]) => name);
  expect(exported.filter((name) => !saved.some((path) => path.startsWith(`${name}/`)))).toEqual([]);
});

test('Saved histories hold only ids, names and numbers, and no text of users', async () => {
  for (const saved of await savedHistories()) expect([saved.name, foreignTexts(saved)]).toEqual([saved.name, []]);
});

test('The check finds a text anywhere in a history', () => {
  const historyOf = (payload: unknown, message = 'Activity task failed') => {
    const data = Buffer.from(JSON.stringify(payload)).toString('base64');
    const event = { eventType: 'x', input: { payloads: [{ data }] }, failure: { message } };
    return { history: { events: [event] } };
  };
  expect(foreignTexts(historyOf({ turnId: 'trn_01M7ZKA2FDMH6E7TPCR7VZ4D08', step: 1 }))).toEqual([]);
  expect(foreignTexts(historyOf({ turnId: 'What is the weather?' }))).toEqual(['turnId: What is the weather?']);
  expect(foreignTexts(historyOf({ prompt: 'Hello' }))).toEqual(['prompt: Hello']);
  expect(foreignTexts(historyOf([{ toolCalls: [{ toolName: 'rm -rf' }] }]))).toEqual(['toolName: rm -rf']);
  expect(foreignTexts(historyOf('Hello there'))).toEqual([': Hello there']);
  expect(foreignTexts(historyOf({}, 'The key sk-1 is wrong'))).toEqual(['message: The key sk-1 is wrong']);
});
