import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { asOperation } from '../asOperation.ts';
import { patiently } from '../retries.ts';

export interface CompleteUploadInput {
  operationId: string;
  uploadId: string;
  heartbeatTimeoutMs: number;
}

/**
 * Makes a file of the parts that a client has sent to the store. An upload that cannot be completed stays, so that the
 * client can correct it and complete it again.
 */
export async function completeUpload({
  operationId,
  uploadId,
  heartbeatTimeoutMs,
}: CompleteUploadInput): Promise<void> {
  // Hashing reads the whole file, which takes minutes at 5 GiB. It can be repeated at any point, and waits for a store
  // that is down.
  const { finishUpload } = proxyActivities<Activities>({
    startToCloseTimeout: '2 hours',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: patiently,
  });
  await asOperation(operationId, async () => {
    const outcome = await finishUpload({ uploadId });
    return outcome.kind === 'placed'
      ? { status: 'succeeded', result: { itemId: outcome.itemId } }
      : { status: outcome.kind, code: outcome.code, detail: outcome.detail };
  });
}
