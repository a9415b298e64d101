/** The queue that workflows started by the API share with their activities. Hosts and git have queues of their own. */
export function mainTaskQueue(installation: string): string {
  return `${installation}-main`;
}

/** The queue of work that waits for git servers, which has few slots: they may take as long as they like. */
export function gitTaskQueue(installation: string): string {
  return `${installation}-git`;
}

/** The queue of one host of computers. */
export function hostTaskQueue(installation: string, hostId: string): string {
  return `${installation}-host-${hostId}`;
}
