import { ApplicationFailure } from '@temporalio/activity';
import { isCalledOff } from '../../models/git/orders.ts';
import { endRepositoryStep, type OrderStep, type StepAt, stepNow } from '../../models/git/steps.ts';
import type { GitDeps, RepositoryWork } from './ordered.ts';

type Act = (work: RepositoryWork) => Promise<void>;

/**
 * Makes each activity continue with the next steps of its order, as long as `acts` has them: asking the workflow in
 * between costs more than most steps do. Rows record the progress of an order, so a repeated attempt continues where
 * the last one stopped, and a repeated report of a finished step changes nothing.
 */
export function oneAfterTheOther<T extends Partial<Record<OrderStep, Act>>>(
  { database }: Pick<GitDeps, 'database'>,
  acts: T,
): Record<keyof T, Act> {
  const actOf = (now: StepAt | undefined) => now && acts[now.step];

  async function goOn(first: OrderStep, work: RepositoryWork): Promise<void> {
    let now = await stepNow(database, work.orderId);
    for (let act = actOf(now); now !== undefined && act !== undefined; act = actOf(now)) {
      const done = { ...work, ...now };
      try {
        await act(done);
      } catch (error) {
        // The workflow attributes a failure to the step that it asked for. Failures of later steps are recorded here.
        const isFirst = now.step === first && (work.at === undefined || work.at === now.at);
        if (isFirst || !(error instanceof ApplicationFailure) || error.nonRetryable !== true) throw error;
        await endRepositoryStep(database, { ...done, code: error.type ?? 'GIT_FAILED' });
        return;
      }
      now = await endRepositoryStep(database, done);
      if (now !== undefined && (await isCalledOff(database, work.orderId))) return;
    }
  }

  const entries = Object.keys(acts).map((name) => {
    const step = name as OrderStep;
    return [step, (work: RepositoryWork) => goOn(step, work)];
  });
  return Object.fromEntries(entries) as Record<keyof T, Act>;
}
