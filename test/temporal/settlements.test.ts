import type { LauncherKit } from '../../temporal/launcherKit.ts';
import { createBillingLauncher } from '../../temporal/launchers/billing.ts';

test('An event that was not settled in time always gets the same workflow id, also when it is swept with others', async () => {
  const started: string[] = [];
  const start = async (_workflow: unknown, { workflowId }: { workflowId: string }) => {
    started.push(workflowId);
    return 'reached' as const;
  };
  const { settleAgain } = createBillingLauncher({ kit: { start } as unknown as LauncherKit });
  await Promise.all(['evt_1', 'evt_2', 'evt_3'].map(settleAgain));
  await Promise.all(['evt_2', 'evt_3', 'evt_4'].map(settleAgain));
  const ids = ['evt_1', 'evt_2', 'evt_3', 'evt_2', 'evt_3', 'evt_4'];
  expect(started).toEqual(ids.map((id) => `settlePayment/${id}`));
});
