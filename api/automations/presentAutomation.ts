import type { Schedule } from '../../base/schedule.ts';
import type { Automation } from '../../models/automations/automation.ts';
import type { AutomationRun } from '../../models/automations/runs.ts';
import { toCredits } from '../../models/billing/money.ts';
import type { AnswerOf } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { optionalTime, time } from '../frame/times.ts';

type Shown = AnswerOf<'getAutomation'>;

export function presentAutomation(deps: Pick<RouteDeps, 'config'>, automation: Automation): Shown {
  const { id, spaceId, name, prompt, threadId, modelId, effort, mode, files, overlap, enabled, failures } = automation;
  const { schedule, pause, userId, madeByTurnId, hasSecret, costMicro } = automation;
  return {
    ...{ id, spaceId, name, prompt, threadId, modelId, effort, mode, overlap, enabled, failures },
    files: files as Shown['files'],
    schedule: schedule && presentSchedule(schedule),
    pause: pause && { ...pause, at: time(pause.at) },
    nextRunAt: optionalTime(automation.nextRunAt),
    lastRunAt: optionalTime(automation.lastRunAt),
    cost: toCredits(costMicro),
    webhook: { url: webhookUrl(deps, id), hasSecret },
    createdBy: { userId, turnId: madeByTurnId },
    createdAt: time(automation.createdAt),
    updatedAt: time(automation.updatedAt),
  };
}

export function webhookUrl({ config }: Pick<RouteDeps, 'config'>, id: string): string {
  return new URL(`/api/webhooks/automations/${id}`, config.http.publicUrl).href;
}

function presentSchedule(schedule: Schedule): NonNullable<Shown['schedule']> {
  return 'at' in schedule ? { at: time(schedule.at) } : schedule;
}

export function presentRun(run: AutomationRun): AnswerOf<'runAutomation'> {
  const { id, automationId, kind, turnId, code, detail, costMicro } = run;
  return {
    ...{ id, automationId, kind, turnId, status: statusOf(run) },
    scheduledAt: optionalTime(run.scheduledAt),
    error: code === null ? null : { code, detail: detail ?? '' },
    cost: costMicro === null ? null : toCredits(costMicro),
    createdAt: time(run.createdAt),
    startedAt: optionalTime(run.startedAt),
    endedAt: optionalTime(run.endedAt),
  };
}

/** Once a run has a turn, its status is that of the turn, even before the run is settled. */
function statusOf({ status, turnStatus }: AutomationRun): AnswerOf<'runAutomation'>['status'] {
  if (status === 'pending') return 'queued';
  return status === 'started' ? (turnStatus ?? 'stopped') : status;
}
