import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';

/** How a workflow ended that did not do what was asked for. */
export interface BadEnd {
  status: 'failed' | 'timed_out' | 'cancelled' | 'stopped';
  code?: string | null;
  /** Whose work it was, where the workflow was started without saying so. */
  userId?: string;
}

/**
 * Lets an operator find a bad end in the Temporal UI: by `Outcome = "failed"` in the list, and with its code on the
 * workflow's page. A workflow that did what was asked for has no outcome, which saves it an event.
 */
export function tellBadEnd(what: string, { status, code, userId }: BadEnd): void {
  setCurrentDetails(`${what}: ${status}${code == null ? '' : ` (${code})`}`);
  const by = userId === undefined ? [] : [keyword('UserId', userId)];
  upsertSearchAttributes([keyword('Outcome', status), ...by]);
}

function keyword(name: string, value: string) {
  return { key: { name, type: 'KEYWORD' }, value } as const;
}
