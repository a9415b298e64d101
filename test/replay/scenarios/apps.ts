import { appRunWorkflowId } from '../../../temporal/workflowIds.ts';
import { appsOf, manifestOf } from '../../builders/app.ts';
import { waitFor } from '../../support/waitFor.ts';
import type { Scenario } from './scenario.ts';

// There is no host for computers here, so every attempt fails.
export const appScenarios: Scenario[] = [
  {
    name: 'appRun/failed',
    async run(product, user) {
      const apps = appsOf(product, user);
      const { runId } = (await apps.run(await apps.app(manifestOf('make')))).body;
      await apps.ended(runId);
      return appRunWorkflowId(runId);
    },
  },
  {
    name: 'appRun/retried',
    async run(product, user) {
      const apps = appsOf(product, user);
      const id = await apps.app(manifestOf('make', { retry: { attempts: 2, delay: 1 } }));
      const { runId } = (await apps.run(id)).body;
      await apps.ended(runId);
      return appRunWorkflowId(runId);
    },
  },
  {
    name: 'appRun/cancelled',
    async run(product, user) {
      const apps = appsOf(product, user);
      const id = await apps.app(manifestOf('make', { retry: { attempts: 2, delay: 3_600 } }));
      const asked = apps.run(id);
      const run = await waitFor('its first attempt', async () => {
        const [first] = (await apps.runs(id)).body.data;
        return first?.error === null ? undefined : first;
      });
      await apps.cancel(run.id);
      await apps.ended(run.id);
      await asked;
      return appRunWorkflowId(run.id);
    },
  },
];
