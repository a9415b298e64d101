import { workflowInfo } from '@temporalio/workflow';

/** Whether a workflow should go on in a new run: its history is as long as it may be, or the server says so. */
export function isHistoryFull({ maxHistoryEvents }: { maxHistoryEvents: number }): boolean {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  return continueAsNewSuggested || historyLength >= maxHistoryEvents;
}
