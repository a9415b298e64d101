import type { RequestHandler } from 'express';
import type { Config } from '../../../config/index.ts';
import { ConnectionCounter } from '../connectionLimits.ts';
import { whenClosed } from '../goneOf.ts';

/**
 * Lets a user read so many event streams at once, by whatever operation: each holds a connection and what its reader
 * has not taken yet. It is asked before anything is done about the request. It counts in one API process.
 */
export function streamSlots({ http }: Pick<Config, 'http'>): RequestHandler {
  const streams = new ConnectionCounter(http.maxStreamsPerUser);
  return (req, res, next) => {
    const userId = req.caller?.userId;
    const isStream = req.operation?.answerTypes.includes('text/event-stream') === true;
    // A client that has gone already would never give its place back.
    if (userId !== undefined && isStream && !res.closed) whenClosed(res, streams.enter(userId));
    next();
  };
}
