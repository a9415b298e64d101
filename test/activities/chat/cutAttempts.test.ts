import { ModelStep, maxCuts, type StepDeps } from '../../../activities/chat/modelStep.ts';
import type { ModelPart } from '../../../integrations/chat/modelCall.ts';
import { chatModels } from '../../../models/chat/models.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { MessageFold } from '../../../models/chat/turnLog/foldChunks.ts';
import { buildTurn, buildTurnLog, readLog } from '../../builders/turnLog.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

/** A step whose process dies in the middle again and again. Each attempt costs money, so their number is limited. */
let environment: TestEnvironment;
let deps: StepDeps;
beforeAll(async () => {
  environment = await createTestEnvironment();
  const { config, database } = environment;
  deps = { config, database, turnLog: buildTurnLog(database).turnLog } as StepDeps;
});
afterAll(async () => {
  await deps.turnLog.close();
  await environment.close();
});

/** An attempt that streams these words and then stops, as if its process was killed. */
async function attempt(turn: Turn, words: string): Promise<ModelStep> {
  const step = new ModelStep(deps, turn, 0, 'demo');
  await step.open();
  if (words !== '') {
    step.add({ type: 'text-start', id: 't' });
    step.add({ type: 'text-delta', id: 't', delta: words });
  }
  await step.flush();
  return step;
}

async function textOf({ id }: Turn): Promise<string> {
  const fold = new MessageFold();
  for (const chunk of await readLog(deps.turnLog, id)) fold.add(chunk);
  return fold
    .parts()
    .map((part) => (part.type === 'text' ? part.text : ''))
    .join('');
}

test('An answer that was cut off too often is not requested again and keeps its last words', async () => {
  const turn = await buildTurn(environment.database);
  for (let number = 1; number <= maxCuts; number++) {
    await attempt(turn, `attempt ${number}`);
    expect(await textOf(turn)).toBe(`attempt ${number}`);
  }
  // Later tries are refused too.
  for (let more = 0; more < 2; more++) {
    const refused = new ModelStep(deps, turn, 0, 'demo');
    await expect(refused.open()).rejects.toMatchObject({ code: 'ANSWER_CUT_TOO_OFTEN' });
    expect(refused.fenced.aborted).toBe(true);
  }
  expect(await textOf(turn)).toBe(`attempt ${maxCuts}`);
});

test('Attempts without output and attempts that failed at the provider are not counted', async () => {
  const turn = await buildTurn(environment.database);
  for (let number = 0; number < maxCuts; number++) {
    await attempt(turn, '');
    await (await attempt(turn, 'overloaded')).failed();
  }
  await attempt(turn, 'cut');
  await attempt(turn, 'the answer');
  expect(await textOf(turn)).toBe('the answer');
  const call = await chatModels(environment.database).ModelCall.findOne({ where: { turnId: turn.id } });
  expect(call).toMatchObject({ cuts: 1, attempts: 2 * maxCuts + 2 });
});

/**
 * An attempt that may continue the words before it, and whose process dies after `parts`. Returns the words that it
 * kept.
 */
async function continuing(turn: Turn, parts: ModelPart[]): Promise<string | undefined> {
  const step = new ModelStep(deps, turn, 0, 'demo', { continues: true });
  await step.open();
  for (const part of parts) step.add(part);
  await step.flush();
  return step.kept;
}

const said = (delta: string): ModelPart[] => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta },
];

test('A model that can continue goes on after the words that were cut off, several times', async () => {
  const turn = await buildTurn(environment.database);
  expect(await continuing(turn, said('one '))).toBeUndefined();
  expect(await continuing(turn, said(' two'))).toBe('one ');
  expect(await continuing(turn, said(' three'))).toBe('one two');
  expect(await textOf(turn)).toBe('one two three');
  // The model adds nothing, so the kept words are the answer.
  const last = new ModelStep(deps, turn, 0, 'demo', { continues: true });
  await last.open();
  await last.flush();
  const log = await readLog(deps.turnLog, turn.id);
  expect(log.filter(({ type }) => type === 'text-start' || type === 'data-attempt')).toHaveLength(1);
});

test('Output with tool calls or reasoning is discarded and requested again', async () => {
  const turn = await buildTurn(environment.database);
  const call: ModelPart[] = [...said('Let me look.'), { type: 'tool-input-start', id: 'c', toolName: 'drive_list' }];
  await continuing(turn, call);
  expect(await continuing(turn, said('Again.'))).toBeUndefined();
  expect(await textOf(turn)).toBe('Again.');
  const reasoning = await buildTurn(environment.database);
  await continuing(reasoning, [
    { type: 'reasoning-start', id: 'r' },
    { type: 'reasoning-delta', id: 'r', delta: 'Hm' },
  ]);
  expect(await continuing(reasoning, said('Well.'))).toBeUndefined();
  expect(await textOf(reasoning)).toBe('Well.');
});
