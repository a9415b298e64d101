/** The queue that workflows started by the API share with their activities. What takes long has queues of its own. */
export function mainTaskQueue(installation: string): string {
  return `${installation}-main`;
}

/** The queue of work that waits for git servers, which has few slots: they may take as long as they like. */
export function gitTaskQueue(installation: string): string {
  return `${installation}-git`;
}

/** The queue of apps' runs, each of which holds a slot for as long as its program runs. */
export function runTaskQueue(installation: string): string {
  return `${installation}-runs`;
}

/** The queue of backups of spaces' databases, each of which reads as fast as their server gives. */
export function backupTaskQueue(installation: string): string {
  return `${installation}-backups`;
}

/** The queue of what else takes long with those: making one from a backup, and writing its tables anew. */
export function longDatabaseTaskQueue(installation: string): string {
  return `${installation}-databases`;
}

/** The queue of what endpoints of spaces are told, which may take as long to answer as they like. */
export function webhookTaskQueue(installation: string): string {
  return `${installation}-webhooks`;
}

/** The queue of one host of computers. */
export function hostTaskQueue(installation: string, hostId: string): string {
  return `${installation}-host-${hostId}`;
}
