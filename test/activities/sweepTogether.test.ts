import { MockActivityEnvironment } from '@temporalio/testing';
import { createSweepTogether } from '../../activities/sweepTogether.ts';
import { createLogger } from '../../telemetry/logger.ts';

const logger = createLogger({ level: 'silent' });

test('sweeps run beside each other, and the failure of one is told when the others have ended', async () => {
  const { promise: firstSeen, resolve: seeFirst } = Promise.withResolvers<void>();
  const { promise: failed, resolve: fail } = Promise.withResolvers<void>();
  let hasEnded = false;
  const sweepTogether = createSweepTogether(
    { logger },
    {
      async sweepFirst() {
        seeFirst();
        await failed;
        hasEnded = true;
        return 1;
      },
      async sweepSecond() {
        await firstSeen;
        fail();
        throw new Error('the second');
      },
    },
  );
  await expect(new MockActivityEnvironment().run(sweepTogether)).rejects.toMatchObject({
    message: 'Failed: sweepSecond',
    nonRetryable: true,
  });
  expect(hasEnded).toBe(true);
});

test('what each has done is answered', async () => {
  const sweepTogether = createSweepTogether(
    { logger },
    { sweepFirst: async () => 1, sweepSecond: async () => ({ looked: 2 }) },
  );
  expect(await new MockActivityEnvironment().run(sweepTogether)).toEqual({ sweepFirst: 1, sweepSecond: { looked: 2 } });
});
