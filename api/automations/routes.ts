import { DomainError } from '../../base/errors.ts';
import type { Schedule } from '../../base/schedule.ts';
import { type Automation, asScheduled, getAutomation, listAutomations } from '../../models/automations/automation.ts';
import {
  type AutomationFields,
  changeAutomation,
  deleteAutomation,
  makeAutomation,
} from '../../models/automations/changes.ts';
import { attachFiles } from '../../models/chat/attachments.ts';
import type { FileReference } from '../../models/chat/message.ts';
import { authorizeThread } from '../chat/authorizeThread.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorityOf, type Caller, callerOf, requireScope } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { type BodyOf, bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { presentAutomation } from './presentAutomation.ts';

type Said = BodyOf<'updateAutomation'>;

/** Automations themselves. Their runs are in runRoutes.ts. */
export function automationRoutes(deps: RouteDeps) {
  const { catalogue, config, database, launcher } = deps;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/automations', async (req, res) => {
    const { spaceId } = pathOf<'listAutomations'>(req);
    const { data, nextCursor } = await listAutomations(
      database,
      { spaceId, userId: callerOf(req).userId },
      pageOf(req),
    );
    answer<'listAutomations'>(res, 200, { data: data.map((one) => presentAutomation(deps, one)), nextCursor });
  });

  router.post('/api/spaces/:spaceId/automations', async (req, res) => {
    const caller = callerOf(req);
    const { spaceId } = pathOf<'createAutomation'>(req);
    const body = bodyOf<'createAutomation'>(req);
    const fields = fieldsOf(body);
    await check(caller, spaceId, fields);
    await makeOnce<'createAutomation'>(deps, req, res, 'automation', async (id) => {
      const made = await makeAutomation(
        database,
        {
          ...{ id, spaceId, authority: authorityOf(caller), madeByTurnId: null, name: body.name, prompt: body.prompt },
          ...{ threadId: null, modelId: null, effort: null, mode: 'ask', files: [], schedule: null, enabled: true },
          // A delivery must not be lost. A skipped tick is followed by the next one.
          overlap: fields.schedule == null ? 'queue' : 'skip',
          ...fields,
        },
        actorOf(req),
        config.automations,
      );
      return presentAutomation(deps, scheduled(made));
    });
  });

  router.get('/api/spaces/:spaceId/automations/:automationId', async (req, res) => {
    const { spaceId, automationId: id } = pathOf<'getAutomation'>(req);
    const automation = await getAutomation(database, { spaceId, userId: callerOf(req).userId, id });
    answer<'getAutomation'>(res, 200, presentAutomation(deps, automation));
  });

  router.patch('/api/spaces/:spaceId/automations/:automationId', async (req, res) => {
    const caller = callerOf(req);
    const { spaceId, automationId: id } = pathOf<'updateAutomation'>(req);
    const fields = fieldsOf(bodyOf<'updateAutomation'>(req));
    const known = await getAutomation(database, { spaceId, userId: caller.userId, id });
    await check(caller, spaceId, { ...fields, files: fields.files ?? known.files, mode: fields.mode ?? known.mode });
    const by = { actor: actorOf(req), authority: authorityOf(caller) };
    const changed = await changeAutomation(database, { spaceId, id }, fields, by, config.automations);
    answer<'updateAutomation'>(res, 200, presentAutomation(deps, scheduled(changed)));
  });

  router.delete('/api/spaces/:spaceId/automations/:automationId', async (req, res) => {
    const { spaceId, automationId: id } = pathOf<'deleteAutomation'>(req);
    await deleteAutomation(database, { spaceId, id }, actorOf(req));
    void launcher.scheduleAutomation({ id, spaceId, version: 0, when: null });
    res.status(204).end();
  });

  /** Refuses now what could only fail at the first run. */
  async function check(caller: Caller, spaceId: string, fields: Partial<AutomationFields>): Promise<void> {
    const { threadId, files = [], modelId, effort, mode } = fields;
    if (threadId != null && (await authorizeThread(deps, caller, threadId)).spaceId !== spaceId) {
      throw new DomainError('unprocessable', 'SPACE_MISMATCH', 'The thread belongs to another space.', {
        errors: [{ pointer: '/threadId', detail: 'is a thread of another space' }],
      });
    }
    if (files.length > 0) requireScope(caller, 'drive:read', ', which attaching files takes');
    await attachFiles(database, { spaceId, userId: caller.userId }, files);
    if (modelId != null || effort != null) {
      catalogue.resolve({ modelId, effort, needs: { mode, tools: mode === 'work' } });
    }
  }

  /** Tells Temporal at once. The sweeper would do so too. */
  function scheduled(automation: Automation): Automation {
    void launcher.scheduleAutomation(asScheduled(automation));
    return automation;
  }

  return router;
}

/** Only the fields that the body contains. */
function fieldsOf({ schedule, files, ...said }: Said): Partial<AutomationFields> {
  return {
    ...said,
    ...(files !== undefined && { files: files as FileReference[] }),
    ...(schedule !== undefined && { schedule: schedule && readSchedule(schedule) }),
  };
}

function readSchedule(schedule: NonNullable<Said['schedule']>): Schedule {
  return 'at' in schedule ? { at: new Date(schedule.at) } : schedule;
}
