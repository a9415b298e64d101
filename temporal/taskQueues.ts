/** The queue of workflows that the API starts, and of their activities. Long work has queues of its own. */
export function mainTaskQueue(installation: string): string {
  return `${installation}-main`;
}

/** The queue of work that waits for git servers. It has few slots, because those servers may be slow. */
export function gitTaskQueue(installation: string): string {
  return `${installation}-git`;
}

/** The queue of apps' runs and of steps of environments. Each holds a slot for as long as its program runs. */
export function runTaskQueue(installation: string): string {
  return `${installation}-runs`;
}

/** The queue of backups of spaces' databases. Each reads only as fast as the server delivers. */
export function backupTaskQueue(installation: string): string {
  return `${installation}-backups`;
}

/** The queue of other long work on those databases: making one from a backup, and rewriting its tables. */
export function longDatabaseTaskQueue(installation: string): string {
  return `${installation}-databases`;
}

/** The queue of deliveries to endpoints of spaces, which may take as long to answer as they like. */
export function webhookTaskQueue(installation: string): string {
  return `${installation}-webhooks`;
}

/** The queue of one host of computers. */
export function hostTaskQueue(installation: string, hostId: string): string {
  return `${installation}-host-${hostId}`;
}
