import { sleep } from '@temporalio/workflow';

/** A change that workflows which run already cannot live with: a timer before everything else. */
export async function runChatTurn(): Promise<void> {
  await sleep('1 second');
}
