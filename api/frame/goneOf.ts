import type { Response } from 'express';

const waiting = new WeakMap<Response, (() => void)[] | 'closed'>();

/**
 * Calls `work` when the response closes: it was sent, or the client has gone. If that has already happened, calls it at
 * once: a client may leave before its operation begins to answer. All work of a response shares one listener. Node
 * warns of a leak from the eleventh listener, and a `pipeline` into the response already adds seven.
 */
export function whenClosed(res: Response, work: () => void): void {
  const known = waiting.get(res);
  if (res.closed || known === 'closed') return void work();
  if (known !== undefined) return void known.push(work);
  const all = [work];
  waiting.set(res, all);
  res.once('close', () => {
    // An upgraded response emits the event, but is not `closed`.
    waiting.set(res, 'closed');
    for (const each of all) each();
  });
}

/** Aborted when the client has gone. */
export function goneOf(res: Response): AbortSignal {
  const gone = new AbortController();
  whenClosed(res, () => gone.abort());
  return gone.signal;
}
