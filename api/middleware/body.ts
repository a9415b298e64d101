import express, { type Request, type RequestHandler } from 'express';
import { DomainError } from '../../models/errors.ts';

const limit = '1mb';
/** What a page's form sends is a few short fields. */
const form = { extended: false, limit: '16kb', parameterLimit: 20 };
const formType = 'application/x-www-form-urlencoded';

/**
 * Reads a JSON body of at most 1 MiB, or a small form, where the contract's operation takes one; it comes after authentication, so a stranger
 * cannot make us parse. Other types (uploads, raw webhooks) are left unread, for their routes to stream.
 */
export function readBody(): RequestHandler {
  const readJson = express.json({
    limit,
    strict: false,
    verify(req, _res, raw) {
      const request = req as Request;
      // Signatures are over the bytes and not over what they mean.
      if (request.operation?.area === 'Webhooks') request.rawBody = raw;
    },
  });
  const readForm = express.urlencoded(form);
  return (req, res, next) => {
    if (req.operation?.bodyTypes.includes(formType) === true) return readForm(req, res, next);
    if (req.operation?.bodyTypes.includes('application/json') !== true) return next();
    readJson(req, res, (error?: unknown) => {
      if (error !== undefined) return next(error);
      next(hasNoBody(req) && req.operation?.bodyRequired ? missingBody() : undefined);
    });
  };
}

function hasNoBody(req: { body?: unknown; headers: { 'content-type'?: string } }): boolean {
  // With another media type the body is unread, and the validator answers 415.
  return req.body === undefined && (req.headers['content-type'] ?? '').toLowerCase().startsWith('application/json');
}

function missingBody(): DomainError {
  return new DomainError('invalid', 'INVALID_REQUEST', 'The body is missing.', {
    errors: [{ pointer: '', detail: 'is required' }],
  });
}
