import { ModelStep, maxCuts, type StepDeps } from '../../../activities/chat/modelStep.ts';
import type { ModelPart } from '../../../integrations/chat/modelCall.ts';
import { chatModels } from '../../../models/chat/models.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { MessageFold } from '../../../models/chat/turnLog/foldChunks.ts';
import { buildTurn, buildTurnLog, readLog } from '../../builders/turnLog.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

/** A step whose process ends in the middle of it, time and again: each attempt is paid for. */
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

/** An attempt that has said this much; nothing more comes of it, as when its process was killed. */
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

test('an answer that was cut off too often is not asked for again, and its last words stay', async () => {
  const turn = await buildTurn(environment.database);
  for (let number = 1; number <= maxCuts; number++) {
    await attempt(turn, `attempt ${number}`);
    expect(await textOf(turn)).toBe(`attempt ${number}`);
  }
  // However often it is tried after that.
  for (let more = 0; more < 2; more++) {
    const refused = new ModelStep(deps, turn, 0, 'demo');
    await expect(refused.open()).rejects.toMatchObject({ code: 'ANSWER_CUT_TOO_OFTEN' });
    expect(refused.fenced.aborted).toBe(true);
  }
  expect(await textOf(turn)).toBe(`attempt ${maxCuts}`);
});

test('attempts that had said nothing, or that their provider has failed, are not counted', async () => {
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

/** An attempt that may go on, whose process ends before the parts do. */
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

test('words that were cut off stand where the model can go on behind them, again and again', async () => {
  const turn = await buildTurn(environment.database);
  expect(await continuing(turn, said('one '))).toBeUndefined();
  expect(await continuing(turn, said(' two'))).toBe('one ');
  expect(await continuing(turn, said(' three'))).toBe('one two');
  expect(await textOf(turn)).toBe('one two three');
  // It says nothing more: what is there is the answer.
  const last = new ModelStep(deps, turn, 0, 'demo', { continues: true });
  await last.open();
  await last.flush();
  const log = await readLog(deps.turnLog, turn.id);
  expect(log.filter(({ type }) => type === 'text-start' || type === 'data-attempt')).toHaveLength(1);
});

test('what is more than words is discarded and asked for again', async () => {
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
