/** The queue that workflows started by the API share with their activities. Hosts have queues of their own. */
export function mainTaskQueue(installation: string): string {
  return `${installation}-main`;
}

/** The queue of one host of computers. */
export function hostTaskQueue(installation: string, hostId: string): string {
  return `${installation}-host-${hostId}`;
}
