import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';

const header = 'x-request-id';
// Safe in a log line and in a header; anything else from a client is replaced.
const acceptable = /^[A-Za-z0-9._-]{1,128}$/;

/** Gives each request an id, the client's own where it is acceptable, and says it in the response. */
export function requestId(): RequestHandler {
  return (req, res, next) => {
    const given = req.headers[header];
    req.id = typeof given === 'string' && acceptable.test(given) ? given : randomUUID();
    res.setHeader(header, req.id);
    next();
  };
}
