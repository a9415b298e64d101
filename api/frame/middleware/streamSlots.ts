import type { RequestHandler } from 'express';
import type { Config } from '../../../config/index.ts';
import { ConnectionCounter } from '../connectionLimits.ts';
import { whenClosed } from '../goneOf.ts';

/**
 * Limits the event streams that a user reads at once, across all operations: each holds a connection and its unread
 * backlog. Checked before any work on the request begins. Counted per API process.
 */
export function streamSlots({ http }: Pick<Config, 'http'>): RequestHandler {
  const streams = new ConnectionCounter(http.maxStreamsPerUser);
  return (req, res, next) => {
    const userId = req.caller?.userId;
    const isStream = req.operation?.answerTypes.includes('text/event-stream') === true;
    if (userId !== undefined && isStream) whenClosed(res, streams.enter(userId));
    next();
  };
}
