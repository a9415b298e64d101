import { type Automation, getAutomation } from '../../models/automations/automation.ts';
import { askToRun, getRun, listRuns } from '../../models/automations/runs.ts';
import { insufficientScope, lackingOf } from '../../models/identity/authority.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorityOf, type Caller, callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { optionalTime } from '../frame/times.ts';
import { presentRun, webhookUrl } from './presentAutomation.ts';

/** Routes that start an automation, and that list its runs. */
export function automationRunRoutes(deps: RouteDeps) {
  const { config, database, launcher, automationSecrets } = deps;
  const router = createRouter();

  router.post('/api/spaces/:spaceId/automations/:automationId/run', async (req, res) => {
    const { spaceId, automationId: id } = pathOf<'runAutomation'>(req);
    const caller = callerOf(req);
    await authorizeStart(caller, spaceId, id);
    await makeOnce<'runAutomation'>(deps, req, res, 'automationRun', async (runId) => {
      await askToRun(database, { spaceId, userId: caller.userId, id }, runId, config.automations);
      void launcher.startAutomationRun({ id: runId, spaceId });
      return presentRun(await getRun(database, runId));
    });
  });

  router.get('/api/spaces/:spaceId/automations/:automationId/runs', async (req, res) => {
    const { spaceId, automationId: id } = pathOf<'listAutomationRuns'>(req);
    await getAutomation(database, { spaceId, userId: callerOf(req).userId, id });
    const { data, nextCursor } = await listRuns(database, id, pageOf(req));
    answer<'listAutomationRuns'>(res, 200, { data: data.map(presentRun), nextCursor });
  });

  router.post('/api/spaces/:spaceId/automations/:automationId/webhook/secret', async (req, res) => {
    const { spaceId, automationId: id } = pathOf<'renewAutomationSecret'>(req);
    await authorizeStart(callerOf(req), spaceId, id);
    const { revokePrevious = false } = bodyOf<'renewAutomationSecret'>(req) ?? {};
    const make = async (secretId: string) => {
      await automationSecrets.renew({ spaceId, id }, { id: secretId, revokePrevious }, actorOf(req));
      return { id: secretId };
    };
    await makeOnce<'renewAutomationSecret', { id: string }>(deps, req, res, 'webhookSecret', make, {
      // The secret is stored only sealed, so it is opened for the answer.
      show: async ({ id: secretId }) => {
        const { secret, previousUntil } = await automationSecrets.shown({ spaceId, id }, secretId);
        return { secret, url: webhookUrl(deps, id), previousUntil: optionalTime(previousUntil) };
      },
    });
  });

  /** A key must not make an automation do more than the key itself may do. */
  async function authorizeStart(caller: Caller, spaceId: string, id: string): Promise<Automation> {
    const automation = await getAutomation(database, { spaceId, userId: caller.userId, id });
    const lacking = lackingOf(authorityOf(caller), automation.scopes);
    if (lacking !== undefined) throw insufficientScope(lacking, ', which this automation has');
    return automation;
  }

  return router;
}
