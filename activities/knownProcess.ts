import { DomainError } from '../base/errors.ts';
import type { HostClient } from '../integrations/computers/hostClient.ts';

/** Whether a process of this id was ever started on the computer. */
export async function isKnownProcess(client: HostClient, processId: string): Promise<boolean> {
  try {
    await client.process(processId);
    return true;
  } catch (error) {
    if (error instanceof DomainError && error.code === 'PROCESS_NOT_FOUND') return false;
    throw error;
  }
}
