import type { Response } from 'express';

/** Aborted when the client has gone. */
export function goneOf(res: Response): AbortSignal {
  const gone = new AbortController();
  if (res.closed) gone.abort();
  res.once('close', () => gone.abort());
  return gone.signal;
}
