import { DomainError, notFound } from '../../../base/errors.ts';
import { calendarOf, type Schedule } from '../../../base/schedule.ts';
import { findAutomation, listAutomations } from '../../../models/automations/automation.ts';
import { deleteAutomationIn, lockOwn, makeAutomationIn } from '../../../models/automations/changes.ts';
import { transaction } from '../../../models/database/database.ts';
import type { CommonDeps } from '../../deps.ts';
import { actorOfTurn, idOfCall } from '../calls.ts';
import { objectSchema, type ServerTool, serverTool } from '../tool.ts';

type Deps = Pick<CommonDeps, 'config' | 'database' | 'workflows'>;

interface CreateInput {
  name: string;
  prompt: string;
  cron?: string;
  timeZone?: string;
  at?: string;
  mode: 'ask' | 'work';
  here: boolean;
}

const common = { role: 'editor', scope: 'chat', timeoutMs: 30_000, afterCrash: 'again' } as const;
const listed = 200;

/** Tools with which an agent schedules itself for later, for its user and with at most this turn's rights. */
export function automationTools(deps: Deps): ServerTool[] {
  const { config, database, workflows } = deps;
  return [
    serverTool<CreateInput>({
      ...common,
      name: 'automation_create',
      description:
        'Creates an automation: a prompt that is sent to you automatically, at the times of a cron expression or once, while no user is present. Write the prompt so that it can be understood without this conversation. The user must approve.',
      access: 'act',
      isDangerous: true,
      inputSchema: objectSchema(
        {
          name: { type: 'string', minLength: 1, maxLength: 200, pattern: '\\S' },
          prompt: { type: 'string', minLength: 1, maxLength: 100_000, pattern: '\\S' },
          cron: {
            type: 'string',
            maxLength: 200,
            description: 'Five fields: minute, hour, day of the month, month, day of the week. Needs `timeZone`.',
          },
          timeZone: {
            type: 'string',
            maxLength: 100,
            description: 'A time zone of the IANA database, such as Europe/Berlin.',
          },
          at: {
            type: 'string',
            maxLength: 40,
            description: 'Runs once at this time (RFC 3339). Use instead of `cron`.',
          },
          mode: { enum: ['ask', 'work'], default: 'ask', description: '`ask` only reads, `work` may change things.' },
          here: {
            type: 'boolean',
            default: false,
            description: 'Whether the automation runs in this conversation. If false, it gets its own thread.',
          },
        },
        ['name', 'prompt'],
      ),
      async run({ name, prompt, mode, here, ...input }, context) {
        const { turn, toolCallId } = context;
        const schedule = scheduleOf(input);
        const id = idOfCall('automation', toolCallId);
        const fields = {
          ...{ id, spaceId: turn.spaceId, name, prompt, mode, schedule, madeByTurnId: turn.id },
          ...{ threadId: here ? turn.threadId : null, modelId: turn.modelId, effort: turn.effort, files: [] },
          ...({ overlap: 'skip', enabled: true, authority: { scopes: turn.scopes, apiKeyId: turn.apiKeyId } } as const),
        };
        const made = await transaction(database, async (tx) => {
          const one = await makeAutomationIn(tx, fields, actorOfTurn(turn), config.automations);
          if (one === undefined) {
            throw new DomainError('conflict', 'AUTOMATION_MADE', 'This automation has already been created.');
          }
          const result = { id, threadId: one.threadId, nextRunAt: one.nextRunAt?.toISOString() ?? null };
          await context.record(tx, result);
          return { ...result, next: one.nextRunAt };
        });
        const { spaceId } = turn;
        void workflows.scheduleAutomation({
          ...{ id, spaceId, version: 1, when: made.next === null ? null : calendarOf(schedule) },
        });
        const { next: _, ...result } = made;
        return result;
      },
    }),

    serverTool<Record<string, never>>({
      ...common,
      name: 'automation_list',
      description:
        'Lists the automations of the user in this space, with the time of the next run and whether you created it.',
      access: 'read',
      inputSchema: objectSchema({}),
      async run(_input, { turn: { spaceId, userId } }) {
        const { data } = await listAutomations(database, { spaceId, userId }, { limit: listed });
        return {
          automations: data.map(({ id, name, schedule, mode, enabled, pause, nextRunAt, madeByTurnId, threadId }) => ({
            ...{ id, name, schedule, mode, enabled, threadId, madeByYou: madeByTurnId !== null },
            paused: pause?.detail ?? null,
            nextRunAt: nextRunAt?.toISOString() ?? null,
          })),
        };
      },
    }),

    serverTool<{ id: string }>({
      ...common,
      name: 'automation_delete',
      description:
        'Deletes an automation that you created, by its id. You cannot delete automations that the user created.',
      access: 'act',
      inputSchema: objectSchema({ id: { type: 'string', minLength: 1, maxLength: 200 } }, ['id']),
      async run({ id }, context) {
        const { spaceId, userId } = context.turn;
        const known = await findAutomation(database, id);
        if (known?.userId !== userId || known.spaceId !== spaceId) throw notFound('automation');
        if (known.madeByTurnId === null) {
          throw new DomainError(
            'forbidden',
            'NOT_YOUR_AUTOMATION',
            'The user created this automation. Ask them to delete it.',
          );
        }
        const result = { id, deleted: true };
        await transaction(database, async (tx) => {
          await deleteAutomationIn(tx, await lockOwn(tx, { spaceId, userId, id }), actorOfTurn(context.turn));
          await context.record(tx, result);
        });
        void workflows.scheduleAutomation({ id, spaceId, version: 0, when: null });
        return result;
      },
    }),
  ];
}

function scheduleOf({ cron, timeZone, at }: Pick<CreateInput, 'cron' | 'timeZone' | 'at'>): Schedule {
  if (at !== undefined && cron === undefined) {
    const time = new Date(at);
    if (Number.isNaN(time.getTime())) throw refused('`at` is not a time. Write it like 2026-01-31T08:00:00Z.');
    return { at: time };
  }
  if (cron === undefined || timeZone === undefined || at !== undefined) {
    throw refused('Give either `cron` with `timeZone`, or `at`.');
  }
  return { cron, timeZone };
}

function refused(detail: string): DomainError {
  return new DomainError('unprocessable', 'SCHEDULE_INVALID', detail);
}
