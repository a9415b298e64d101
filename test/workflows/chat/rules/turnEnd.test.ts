import { endOf, failed } from '../../../../workflows/chat/rules/turnEnd.ts';

test('Each outcome ends the turn in one way', () => {
  expect(endOf({ kind: 'answered', finishReason: 'length' })).toEqual({ status: 'completed', finishReason: 'length' });
  expect(endOf({ kind: 'stopped' })).toEqual({ status: 'stopped' });
  expect(endOf({ kind: 'stepLimit' })).toEqual({ status: 'failed', code: 'STEP_LIMIT' });
  expect(endOf({ kind: 'timeLimit' })).toEqual({ status: 'failed', code: 'TIME_LIMIT' });
  expect(endOf(failed({ code: 'PROVIDER_ERROR', retryable: true }))).toEqual({
    status: 'failed',
    code: 'PROVIDER_ERROR',
  });
});

test('A turn that has ended already gets no second end', () => {
  expect(endOf({ kind: 'alreadyEnded' })).toBeUndefined();
});
