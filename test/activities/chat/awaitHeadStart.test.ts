import { jest } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createAwaitHeadStart } from '../../../activities/chat/callModel.ts';
import type { EndTurn } from '../../../activities/chat/endTurn.ts';
import type { CallModelResult } from '../../../activities/chat/runStep.ts';

// Whoever ends a turn with its answer may fail, or never come back: the workflow must hear that it is still to do.

const answered: CallModelResult = { kind: 'answered', finishReason: 'stop' };
const warn = jest.fn();
beforeEach(() => warn.mockReset());

function run(result: CallModelResult | undefined, endTurn: EndTurn) {
  const awaitHeadStart = createAwaitHeadStart({ logger: { warn } as never }, { soon: async () => result }, endTurn);
  const input = { turnId: 'trn_1', modelId: 'fake-1', forMs: 1_000 };
  return new MockActivityEnvironment().run(awaitHeadStart, input);
}

test('an answer ends its turn, and what is left to do is told', async () => {
  const endTurn = jest.fn<EndTurn>(async () => undefined);
  expect(await run(answered, endTurn)).toEqual({ ...answered, after: null });
  expect(endTurn.mock.calls).toEqual([[{ turnId: 'trn_1', end: { status: 'completed', finishReason: 'stop' } }]]);
  expect(await run(answered, async () => ({ namesThread: true }))).toEqual({
    ...answered,
    after: { namesThread: true },
  });
});

test('whatever else a step comes to is for the workflow', async () => {
  const endTurn = jest.fn<EndTurn>();
  for (const result of [
    undefined,
    { kind: 'stopped' },
    { kind: 'toolCalls', toolCalls: [], modelId: 'fake-1' },
  ] as const) {
    expect(await run(result as CallModelResult | undefined, endTurn)).toEqual(result);
  }
  expect(endTurn).not.toHaveBeenCalled();
});

test('an end that fails, or takes too long, is left to the workflow', async () => {
  expect(await run(answered, () => Promise.reject(new Error('The database is away.')))).toEqual(answered);
  expect(warn).toHaveBeenCalledTimes(1);
  expect(await run(answered, () => new Promise(() => undefined))).toEqual(answered);
});
