import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';

/** The end of a workflow that did not do its work. */
export interface BadEnd {
  /** `refused`: it could not be done as the caller asked for it. Nothing failed here. */
  status: 'failed' | 'refused' | 'timed_out' | 'cancelled' | 'stopped';
  code?: string | null;
  /** The owner of the work, if the workflow was started without this search attribute. */
  userId?: string;
}

/**
 * Lets an operator find a bad end in the Temporal UI: by `Outcome = "failed"` in the list, and with its code on the
 * workflow's page. A successful workflow sets no outcome, which saves it an event.
 */
export function tellBadEnd(what: string, { status, code, userId }: BadEnd): void {
  setCurrentDetails(`${what}: ${status}${code == null ? '' : ` (${code})`}`);
  const by = userId === undefined ? [] : [keyword('UserId', userId)];
  upsertSearchAttributes([keyword('Outcome', status), ...by]);
}

function keyword(name: string, value: string) {
  return { key: { name, type: 'KEYWORD' }, value } as const;
}
