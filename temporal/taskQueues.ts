/** The one queue that API-started workflows and their activities share; per-host queues come beside it. */
export function mainTaskQueue(installation: string): string {
  return `${installation}-main`;
}
