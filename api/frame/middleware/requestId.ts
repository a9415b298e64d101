import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';

const header = 'x-request-id';
// Safe in a log line and in a header. Any other id from a client is replaced.
const acceptable = /^[A-Za-z0-9._-]{1,128}$/;

/** Gives each request an id and returns it in the response. The client's own id is used when it is acceptable. */
export function requestId(): RequestHandler {
  return (req, res, next) => {
    const given = req.headers[header];
    req.id = typeof given === 'string' && acceptable.test(given) ? given : randomUUID();
    res.setHeader(header, req.id);
    next();
  };
}
