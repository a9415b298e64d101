/** One function per workflow, so that both the API and the sweeper can make an id from a row alone. */

export function turnWorkflowId(turnId: string): string {
  return `turn/${turnId}`;
}

export function operationWorkflowId(kind: string, operationId: string): string {
  return `${kind}/${operationId}`;
}

/** The operation whose workflow has this id; undefined for a workflow of another kind. */
export function operationOfWorkflow(workflowId: string): { kind: string; operationId: string } | undefined {
  const [kind, operationId, ...rest] = workflowId.split('/');
  return kind && operationId && rest.length === 0 ? { kind, operationId } : undefined;
}

/** The workflow of an actor (workflows/actor.ts). Its kind is the name of the workflow. */
export function actorWorkflowId(kind: string, id: string): string {
  return `${kind}/${id}`;
}

/** A backup's of a space's database, until it is made. */
export function databaseBackupWorkflowId(backupId: string): string {
  return `databaseBackup/${backupId}`;
}

/** One for each notification, by the provider's id for it. */
export function settlementWorkflowId([first, ...others]: readonly [string, ...string[]]): string {
  return ['settlePayment', first, ...(others.length === 0 ? [] : [others.length, others.at(-1)])].join('/');
}

/** The schedule that compares the payment provider's books with ours. */
export function reconcileScheduleId(installation: string): string {
  return `${installation}-reconcile`;
}

export function mailWorkflowId(mailId: string): string {
  return `mail/${mailId}`;
}

/** The schedule that starts the sweeper. */
export function sweeperScheduleId(installation: string): string {
  return `${installation}-sweeper`;
}

/** The schedule that starts the sweeper's upkeep. */
export function upkeepScheduleId(installation: string): string {
  return `${installation}-upkeep`;
}

/** The schedule that starts the sweeper's look at contents. */
export function contentsScheduleId(installation: string): string {
  return `${installation}-contents`;
}

/** What the schedules of automations are called, before the automation's id. */
export function automationSchedulePrefix(installation: string): string {
  return `${installation}-automation/`;
}

/** One for each tick: the schedule adds the time. */
export function automationDueWorkflowId(automationId: string): string {
  return `automationDue/${automationId}`;
}

export function automationRunWorkflowId(runId: string): string {
  return `automationRun/${runId}`;
}

/** What the schedules of apps are called, before the schedule's own id. */
export function appSchedulePrefix(installation: string): string {
  return `${installation}-app/`;
}

/** One for each tick: the schedule adds the time. */
export function appScheduleDueWorkflowId(scheduleId: string): string {
  return `appScheduleDue/${scheduleId}`;
}
