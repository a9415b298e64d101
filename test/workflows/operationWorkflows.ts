import { proxyActivities } from '@temporalio/workflow';
import { asOperation } from '../../workflows/asOperation.ts';

export type Outcome = 'nothing' | 'result' | 'ended' | 'failed' | 'cancelled';

const { work } = proxyActivities<{ work(outcome: Outcome): Promise<void> }>({
  startToCloseTimeout: '1 minute',
  retry: { maximumAttempts: 1 },
});

/** An operation whose work comes to `outcome`. */
export async function operate(outcome: Outcome): Promise<void> {
  await asOperation('op_1', async () => {
    await work(outcome);
    if (outcome === 'result') return { status: 'succeeded', result: { itemId: 'itm_1' } };
    return outcome === 'ended' ? 'ended' : undefined;
  });
}
