import { mainTaskQueue } from '../../../temporal/taskQueues.ts';
import { operationWorkflowId } from '../../../temporal/workflowIds.ts';
import { fake } from '../../builders/product.ts';
import { completedWorkflow } from '../histories.ts';
import type { Scenario } from './scenario.ts';

export const operationScenarios: Scenario[] = [
  {
    name: 'purgeDeleted/thread',
    async run(_product, user) {
      const { threadId } = await user.ask({ content: fake({ tokens: ['Soon gone.'] }), modelId: 'fake-1' });
      return operationOf(await user.fetch(`/api/threads/${threadId}`, { method: 'DELETE' }), 'deleteThread');
    },
  },
  {
    name: 'purgeDeleted/spaceWithRunningTurn',
    async run(_product, user) {
      await user.send({ content: fake({ tokens: 1_000, intervalMs: 20 }), modelId: 'fake-1' });
      return operationOf(await user.fetch(`/api/spaces/${user.spaceId}`, { method: 'DELETE' }), 'deleteSpace');
    },
  },
  {
    name: 'sweep/nothingToDo',
    run: ({ environment: { config } }) =>
      completedWorkflow(config, `TaskQueue = '${mainTaskQueue(config.installation)}' AND WorkflowType = 'sweep'`),
  },
];

/** The workflow of the operation that an answer names in `Location`. */
function operationOf(answer: Response, kind: string): string {
  return operationWorkflowId(kind, answer.headers.get('location')?.split('/').at(-1) ?? '');
}
