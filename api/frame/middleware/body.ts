import { AsyncResource } from 'node:async_hooks';
import { join } from 'node:path';
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { DomainError } from '../../../base/errors.ts';
import { Places } from '../../../base/places.ts';
import type { Config } from '../../../config/index.ts';
import { whenClosed } from '../goneOf.ts';
import { checkEncoding, checkPlainData, checkUtf8 } from '../textFaults.ts';
import { type Arrived, bodyTooLarge, LargeBodies, type LargeBodyLimits, usualBytes } from './largeBodies.ts';
import { checkBodyType } from './mediaTypes.ts';

/** Bodies above the usual limit that this process parses at once. Each takes several times its length in memory. */
const parsedAtOnce = { all: 8, perOwner: 2 };
const formBytes = 16 * 2 ** 10;
/** A page's form has only a few short fields. */
const form = {
  ...{ extended: false, limit: formBytes, parameterLimit: 20 },
  verify(_req: unknown, _res: unknown, raw: Buffer) {
    checkUtf8(raw);
    checkEncoding(raw.toString('latin1'));
  },
};
const formType = 'application/x-www-form-urlencoded';
const jsonType = 'application/json';

/**
 * Reads a JSON body of at most 1 MiB, or a small form, where the operation takes one. Some operations take longer
 * bodies: these arrive on the disk, and of each user two at a time are parsed. Runs after authentication, so that
 * strangers cannot make us parse. Other types (uploads, raw webhooks) stay unread for their routes to stream.
 */
export function readBody({ dataDir }: Pick<Config, 'dataDir'>, limits?: LargeBodyLimits): RequestHandler {
  const readUsual = jsonReader(usualBytes);
  const readers = new Map<number, RequestHandler>();
  const large = new LargeBodies(join(dataDir, 'cache'), limits);
  const places = new Places(parsedAtOnce);
  const readForm = express.urlencoded(form);

  const readJson: RequestHandler = (req, res, next) => {
    const { maxBodyBytes } = req.operation ?? {};
    if (maxBodyBytes === undefined || !mayBeLarge(req)) return readUsual(req, res, next);
    const read = readers.get(maxBodyBytes) ?? jsonReader(maxBodyBytes);
    readers.set(maxBodyBytes, read);
    large.receive(req, res, maxBodyBytes).then(
      (arrived) => parse(req, res, { arrived, read }, next),
      (error: unknown) => {
        // The rest of the body is of no use.
        if (!req.complete && !res.headersSent) res.set('connection', 'close');
        next(error);
      },
    );
  };

  function parse(
    req: Request,
    res: Response,
    { arrived, read }: { arrived: Arrived; read: RequestHandler },
    next: NextFunction,
  ): void {
    const remove = () => void arrived[Symbol.asyncDispose]();
    whenClosed(res, remove);
    const parseNow = () => {
      const { headers, operation } = req;
      const body = Object.assign(arrived.open(), { headers, operation }) as unknown as Request;
      read(body, res, (error?: unknown) => {
        remove();
        req.body = body.body;
        if (body.hasEmptyBody !== undefined) req.hasEmptyBody = body.hasEmptyBody;
        next(error);
      });
    };
    // A body of the usual length has its usual size in memory, unless it is compressed.
    if (arrived.bytes <= usualBytes && req.headers['content-encoding'] === undefined) parseNow();
    else {
      // The request that frees the place resumes this one. Run this one in its own async context, not in that one's.
      req.leaveBodyPlace = places.begin(req.caller?.userId ?? '', AsyncResource.bind(parseNow));
      whenClosed(res, req.leaveBodyPlace);
    }
  }

  return (req, res, next) => {
    const { bodyTypes = [], bodyRequired = false } = req.operation ?? {};
    if (bodyTypes.length === 0) return next();
    checkBodyType(req, bodyTypes);
    const isForm = bodyTypes.includes(formType);
    if (!isForm && !bodyTypes.includes(jsonType)) return next();
    // Without a type the body stays unread. Where a body is optional, it would be silently ignored.
    if (req.headers['content-type'] === undefined && hasBytes(req)) throw untyped();
    refuseTooLong(req, isForm ? formBytes : (req.operation?.maxBodyBytes ?? usualBytes));
    const read = isForm ? readForm : readJson;
    read(req, res, (error?: unknown) => {
      if (error !== undefined) return next(error);
      if (!isForm && bodyRequired && (req.hasEmptyBody === true || req.body === undefined)) return next(missingBody());
      try {
        checkPlainData(req.body);
      } catch (fault) {
        return next(fault);
      }
      next();
    });
  };
}

function jsonReader(limit: number): RequestHandler {
  return express.json({
    limit,
    strict: false,
    verify(req, _res, raw) {
      const request = req as Request;
      checkUtf8(raw);
      request.hasEmptyBody = raw.length === 0;
      // Signatures cover the raw bytes, not their meaning.
      if (request.operation?.area === 'Webhooks') request.rawBody = raw;
    },
  });
}

/** The route does not need the body any more. Frees its memory, and the place of a large one, before the answer ends. */
export function releaseBody(req: Request): void {
  req.body = undefined;
  req.leaveBodyPlace?.();
}

/** Without a length, or compressed, the body may have any. */
function mayBeLarge({ headers }: Request): boolean {
  const isUnknown = headers['transfer-encoding'] !== undefined || headers['content-encoding'] !== undefined;
  return isUnknown || Number(headers['content-length'] ?? 0) > usualBytes;
}

/** Refused by the announced length, instead of after the whole body was sent. */
function refuseTooLong({ headers }: Request, maxBytes: number): void {
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw bodyTooLarge(maxBytes);
}

function hasBytes({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function untyped(): Error {
  return Object.assign(new Error('A body without a type'), { status: 415 });
}

function missingBody(): DomainError {
  return new DomainError('invalid', 'INVALID_REQUEST', 'The body is missing.', {
    errors: [{ pointer: '', detail: 'is required' }],
  });
}
