import type { Response } from 'express';

const waiting = new WeakMap<Response, (() => void)[]>();

/**
 * Calls `work` when the response closes: it was sent, or the client has gone. All work of a response shares one
 * listener. Node warns of a leak from the eleventh listener, and a `pipeline` into the response already adds seven.
 */
export function whenClosed(res: Response, work: () => void): void {
  const known = waiting.get(res);
  if (known !== undefined) return void known.push(work);
  const all = [work];
  waiting.set(res, all);
  res.once('close', () => {
    for (const each of all) each();
  });
}

/** Aborted when the client has gone. */
export function goneOf(res: Response): AbortSignal {
  const gone = new AbortController();
  if (res.closed) gone.abort();
  whenClosed(res, () => gone.abort());
  return gone.signal;
}
