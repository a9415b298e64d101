import express, { type Request, type RequestHandler } from 'express';
import { DomainError } from '../../../models/errors.ts';

const limit = '1mb';
/**
 * Much more than anybody means; what is nested as deep as a body is long cannot be walked without an end of the stack.
 */
const maxDepth = 100;
/** What a page's form sends is a few short fields. */
const form = { extended: false, limit: '16kb', parameterLimit: 20 };
const formType = 'application/x-www-form-urlencoded';
const jsonType = 'application/json';

/**
 * Reads a JSON body of at most 1 MiB, or a small form, where the contract's operation takes one; it comes after
 * authentication, so a stranger cannot make us parse. Other types (uploads, raw webhooks) are left unread, for their
 * routes to stream.
 */
export function readBody(): RequestHandler {
  const readJson = express.json({
    limit,
    strict: false,
    verify(req, _res, raw) {
      const request = req as Request;
      request.hasEmptyBody = raw.length === 0;
      // Signatures are over the bytes and not over what they mean.
      if (request.operation?.area === 'Webhooks') request.rawBody = raw;
    },
  });
  const readForm = express.urlencoded(form);
  return (req, res, next) => {
    const { bodyTypes = [], bodyRequired = false } = req.operation ?? {};
    if (bodyTypes.includes(formType)) return readForm(req, res, next);
    if (!bodyTypes.includes(jsonType)) return next();
    // Unread, it would be passed over silently where a body may be left out.
    if (req.headers['content-type'] === undefined && hasBytes(req)) throw untyped();
    readJson(req, res, (error?: unknown) => {
      if (error !== undefined) return next(error);
      if (bodyRequired && (req.hasEmptyBody === true || hasNoBody(req))) return next(missingBody());
      next(isDeeperThan(req.body, maxDepth) ? tooDeep() : undefined);
    });
  };
}

function hasBytes({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function hasNoBody(req: { body?: unknown; headers: { 'content-type'?: string } }): boolean {
  // With another media type the body is unread, and the validator answers 415.
  return req.body === undefined && (req.headers['content-type'] ?? '').toLowerCase().startsWith(jsonType);
}

/** Level by level and not by recursion: what it looks for is what recursion does not survive. */
function isDeeperThan(value: unknown, levels: number): boolean {
  let level = [value].filter(isContainer);
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === levels) return true;
    level = level.flatMap((container) => Object.values(container).filter(isContainer));
  }
  return false;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function untyped(): Error {
  return Object.assign(new Error('A body without a type'), { status: 415 });
}

function missingBody(): DomainError {
  return new DomainError('invalid', 'INVALID_REQUEST', 'The body is missing.', {
    errors: [{ pointer: '', detail: 'is required' }],
  });
}

function tooDeep(): DomainError {
  return new DomainError('invalid', 'JSON_TOO_DEEP', `The body is nested deeper than ${maxDepth} levels.`);
}
