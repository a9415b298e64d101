import {
  decideAfterFailure,
  type ModelFailure,
  maxAttemptsPerModel,
} from '../../../../workflows/chat/rules/modelRetry.ts';

const outage: ModelFailure = { code: 'PROVIDER_ERROR', retryable: true, fallbackModelId: 'other' };

test('Retries after an outage wait longer each time, with random jitter', () => {
  expect(decideAfterFailure(outage, 1, ['first'], 0.5)).toEqual({ action: 'retry', delayMs: 500 });
  expect(decideAfterFailure(outage, 2, ['first'], 0.5)).toEqual({ action: 'retry', delayMs: 1_000 });
  expect(decideAfterFailure(outage, 1, ['first'], 0)).toEqual({ action: 'retry', delayMs: 375 });
  expect(decideAfterFailure(outage, 1, ['first'], 1)).toEqual({ action: 'retry', delayMs: 625 });
});

test('A retry waits at least Retry-After, and a Retry-After over a minute leads to the next model', () => {
  expect(decideAfterFailure({ ...outage, retryAfterMs: 7_000 }, 1, ['first'], 0.5)).toEqual({
    action: 'retry',
    delayMs: 7_000,
  });
  expect(decideAfterFailure({ ...outage, retryAfterMs: 60_001 }, 1, ['first'], 0.5)).toEqual({
    action: 'fallback',
    modelId: 'other',
  });
});

test('The next model takes over after the last attempt, or at once if the error is not retryable', () => {
  expect(decideAfterFailure(outage, maxAttemptsPerModel, ['first'], 0.5)).toEqual({
    action: 'fallback',
    modelId: 'other',
  });
  expect(decideAfterFailure({ ...outage, retryable: false }, 1, ['first'], 0.5).action).toBe('fallback');
});

test('The step fails if there is no other model, or all have been tried', () => {
  const alone: ModelFailure = { code: 'PROVIDER_REFUSED', retryable: false };
  expect(decideAfterFailure(alone, 1, ['first'], 0.5)).toEqual({ action: 'fail' });
  expect(decideAfterFailure(outage, maxAttemptsPerModel, ['other', 'first'], 0.5)).toEqual({ action: 'fail' });
});
