import {
  decideAfterFailure,
  type ModelFailure,
  maxAttemptsPerModel,
} from '../../../../workflows/chat/rules/modelRetry.ts';

const outage: ModelFailure = { code: 'PROVIDER_ERROR', retryable: true, fallbackModelId: 'other' };

test('an outage is waited for, longer each time and spread by chance', () => {
  expect(decideAfterFailure(outage, 1, ['first'], 0.5)).toEqual({ action: 'retry', delayMs: 500 });
  expect(decideAfterFailure(outage, 2, ['first'], 0.5)).toEqual({ action: 'retry', delayMs: 1_000 });
  expect(decideAfterFailure(outage, 1, ['first'], 0)).toEqual({ action: 'retry', delayMs: 375 });
  expect(decideAfterFailure(outage, 1, ['first'], 1)).toEqual({ action: 'retry', delayMs: 625 });
});

test('Retry-After is the least that is waited, and one over a minute is not waited for', () => {
  expect(decideAfterFailure({ ...outage, retryAfterMs: 7_000 }, 1, ['first'], 0.5)).toEqual({
    action: 'retry',
    delayMs: 7_000,
  });
  expect(decideAfterFailure({ ...outage, retryAfterMs: 60_001 }, 1, ['first'], 0.5)).toEqual({
    action: 'fallback',
    modelId: 'other',
  });
});

test('the next model takes over after the last attempt, and at once when the same call cannot succeed', () => {
  expect(decideAfterFailure(outage, maxAttemptsPerModel, ['first'], 0.5)).toEqual({
    action: 'fallback',
    modelId: 'other',
  });
  expect(decideAfterFailure({ ...outage, retryable: false }, 1, ['first'], 0.5).action).toBe('fallback');
});

test('the step fails when there is no other model, or all have been tried', () => {
  const alone: ModelFailure = { code: 'PROVIDER_REFUSED', retryable: false };
  expect(decideAfterFailure(alone, 1, ['first'], 0.5)).toEqual({ action: 'fail' });
  expect(decideAfterFailure(outage, maxAttemptsPerModel, ['other', 'first'], 0.5)).toEqual({ action: 'fail' });
});
