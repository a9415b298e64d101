import { ApplicationFailure } from '@temporalio/activity';
import { isCalledOff } from '../../models/git/orders.ts';
import { endRepositoryStep, type OrderStep, stepNow } from '../../models/git/steps.ts';
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
  const actOf = (step: OrderStep | undefined) => (step === undefined ? undefined : acts[step]);

  async function goOn(first: OrderStep, work: RepositoryWork): Promise<void> {
    let step = await stepNow(database, work.orderId);
    for (let act = actOf(step); step !== undefined && act !== undefined; act = actOf(step)) {
      try {
        await act(work);
      } catch (error) {
        // The workflow attributes a failure to the step that it asked for. Failures of later steps are recorded here.
        if (step === first || !(error instanceof ApplicationFailure) || error.nonRetryable !== true) throw error;
        await endRepositoryStep(database, { ...work, step, code: error.type ?? 'GIT_FAILED' });
        return;
      }
      step = await endRepositoryStep(database, { ...work, step });
      if (step !== undefined && (await isCalledOff(database, work.orderId))) return;
    }
  }

  const entries = Object.keys(acts).map((name) => {
    const step = name as OrderStep;
    return [step, (work: RepositoryWork) => goOn(step, work)];
  });
  return Object.fromEntries(entries) as Record<keyof T, Act>;
}
