/** One function per workflow, so that both the API and the sweeper can make the id from a row alone. */

export function turnWorkflowId(turnId: string): string {
  return `turn/${turnId}`;
}

export function operationWorkflowId(kind: string, operationId: string): string {
  return `${kind}/${operationId}`;
}

/** The operation whose workflow has this id. Undefined for a workflow of another kind. */
export function operationOfWorkflow(workflowId: string): { kind: string; operationId: string } | undefined {
  const [kind, operationId, ...rest] = workflowId.split('/');
  return kind && operationId && rest.length === 0 ? { kind, operationId } : undefined;
}

/** The workflow of an actor (workflows/actor.ts). Its kind is the name of the workflow. */
export function actorWorkflowId(kind: string, id: string): string {
  return `${kind}/${id}`;
}

/** The workflow that makes a backup of a space's database. */
export function databaseBackupWorkflowId(backupId: string): string {
  return `databaseBackup/${backupId}`;
}

/** By the provider's ids of the notifications: the first, and of several also their count and the last. */
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

/** The schedule that starts the sweeper's check of contents. */
export function contentsScheduleId(installation: string): string {
  return `${installation}-contents`;
}

/** The prefix of automations' schedule ids. The automation's id follows. */
export function automationSchedulePrefix(installation: string): string {
  return `${installation}-automation/`;
}

/** One for each tick: the schedule appends the time. */
export function automationDueWorkflowId(automationId: string): string {
  return `automationDue/${automationId}`;
}

export function automationRunWorkflowId(runId: string): string {
  return `automationRun/${runId}`;
}

/** The prefix of apps' schedule ids. The schedule's own id follows. */
export function appSchedulePrefix(installation: string): string {
  return `${installation}-app/`;
}

/** One for each tick: the schedule appends the time. */
export function appScheduleDueWorkflowId(scheduleId: string): string {
  return `appScheduleDue/${scheduleId}`;
}
