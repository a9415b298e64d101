import { endStep, type StepEnd } from '../../models/computers/ends.ts';
import { type ComputerStep, nextStep } from '../../models/computers/steps.ts';
import type { ComputerDeps } from './deps.ts';

/** What a computer's workflow does in the database. */
export function createComputerSteps(deps: ComputerDeps) {
  return {
    lookAtComputer: ({ computerId }: { computerId: string }): Promise<ComputerStep> => nextStep(deps, computerId),
    endComputerStep: (end: StepEnd): Promise<void> => endStep(deps, end),
  };
}
