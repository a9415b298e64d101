import { ModelStep, type StepDeps, type StepEnd } from '../../../activities/chat/modelStep.ts';
import { runStep } from '../../../activities/chat/runStep.ts';
import { chatModels } from '../../../models/chat/models.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { WriterFencedError } from '../../../models/chat/turnLog/entry.ts';
import { buildTurn, buildTurnLog, buildWriter, readLog } from '../../builders/turnLog.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

/** The last step ends its turn in its own commit: both happen or neither, and only once. */
let environment: TestEnvironment;
let deps: StepDeps;
const settled: string[] = [];
beforeAll(async () => {
  environment = await createTestEnvironment();
  const { config, database } = environment;
  const { turnLog } = buildTurnLog(database);
  const metering = { settle: async (_tx: unknown, { turn }: { turn: Turn }) => void settled.push(turn.id) };
  deps = { config, database, turnLog, metering } as never;
});
afterAll(async () => {
  await deps.turnLog.close();
  await environment.close();
});

const usage = { inputTokens: 3, cachedInputTokens: 0, outputTokens: 2, reasoningTokens: 0 };
const answer = { status: 'completed', finishReason: 'stop' } as const;
const end: StepEnd = { ...answer, usage };

async function saying(turn: Turn, words: string): Promise<ModelStep> {
  const step = new ModelStep(deps, turn, 0, 'demo');
  await step.open();
  step.add({ type: 'text-start', id: 't' });
  step.add({ type: 'text-delta', id: 't', delta: words });
  return step;
}

const stored = (turn: Turn) => chatModels(environment.database).Turn.findByPk(turn.id, { rejectOnEmpty: true });

test('One commit stores the answer and its usage, ends the turn, and frees the thread', async () => {
  const turn = await buildTurn(environment.database);
  const { ended } = await (await saying(turn, 'Yes.')).end(end, answer);
  expect(ended).toMatchObject({ ended: true, turn: { id: turn.id, status: 'completed', finishReason: 'stop' } });
  expect(settled).toContain(turn.id);
  const chunks = await readLog(deps.turnLog, turn.id);
  expect(chunks.slice(-4).map(({ type }) => type)).toEqual(['text-end', 'finish-step', 'data-turn', 'finish']);
  expect(chunks.at(-1)).toMatchObject({ messageMetadata: { usage } });
  expect((await stored(turn)).nextSeq).toBe(chunks.length + 1);
  const { Message, Thread } = chatModels(environment.database);
  const said = await Message.find(turn.threadId, turn.assistantMessageId);
  expect(said?.parts).toContainEqual(expect.objectContaining({ type: 'text', text: 'Yes.' }));
  expect((await Thread.findByPk(turn.threadId))?.activeTurnId).toBeNull();
});

test('A step whose writer was replaced or whose turn has ended ends nothing and settles nothing', async () => {
  const replaced = await buildTurn(environment.database);
  const late = await saying(replaced, 'Too late.');
  await late.flush();
  await buildWriter(environment.database, deps.turnLog, replaced);
  await expect(late.end(end, answer)).rejects.toThrow(WriterFencedError);
  expect(await stored(replaced)).toMatchObject({ status: 'running', terminal: 0 });

  const turn = await buildTurn(environment.database);
  await (await saying(turn, 'Once.')).end(end, answer);
  const before = await readLog(deps.turnLog, turn.id);
  await expect(saying(turn, 'Twice.')).rejects.toThrow(WriterFencedError);
  expect(await readLog(deps.turnLog, turn.id)).toEqual(before);
  expect(settled.filter((id) => id === turn.id)).toHaveLength(1);
  expect(settled).not.toContain(replaced.id);
});

test('A retry of a step whose result was lost learns that the turn was answered', async () => {
  const turn = await buildTurn(environment.database);
  await (await saying(turn, 'Yes.')).end(end, answer);
  const again = { turnId: turn.id, step: 0, modelId: 'demo' };
  const { signal } = new AbortController();
  expect(await runStep(deps as never, again, { cancelled: signal })).toEqual({
    kind: 'answered',
    finishReason: 'stop',
  });
  const other = { ...again, step: 1 };
  expect(await runStep(deps as never, other, { cancelled: signal })).toEqual({ kind: 'alreadyEnded' });
});
