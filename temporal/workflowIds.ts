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

/** A computer's, from when somebody wants it until it rests. */
export function computerWorkflowId(computerId: string): string {
  return `computer/${computerId}`;
}

/** A repository's, for as long as something is to be done in it. */
export function repositoryWorkflowId(itemId: string): string {
  return `repository/${itemId}`;
}

/** A space's database's, for as long as the server has it otherwise than its row. */
export function databaseWorkflowId(databaseId: string): string {
  return `spaceDatabase/${databaseId}`;
}

/** A backup's of a space's database, until it is made. */
export function databaseBackupWorkflowId(backupId: string): string {
  return `databaseBackup/${backupId}`;
}

/** A run's of an app's component, from when it is asked for until it has ended. */
export function appRunWorkflowId(runId: string): string {
  return `appRun/${runId}`;
}

/** A desktop session's, from its order until nothing of it runs. */
export function desktopWorkflowId(sessionId: string): string {
  return `desktop/${sessionId}`;
}

/** A browser session's, from its order until nothing of it runs and its profile is saved. */
export function browserWorkflowId(sessionId: string): string {
  return `browser/${sessionId}`;
}

/** A recording's of a desktop session, from its order until it is on the drive and nowhere else. */
export function desktopRecordingWorkflowId(recordingId: string): string {
  return `desktopRecording/${recordingId}`;
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

/** An endpoint's, while deliveries wait for it. */
export function webhookEndpointWorkflowId(endpointId: string): string {
  return `webhookEndpoint/${endpointId}`;
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
