import { sleep } from '@temporalio/workflow';

/** A change that breaks running workflows: a timer before everything else. */
export async function runChatTurn(): Promise<void> {
  await sleep('1 second');
}
