import { STATUS_CODES } from 'node:http';
import type { ErrorRequestHandler, Request, Response } from 'express';
import { DomainError, type FieldError } from '../../base/errors.ts';
import { loggable } from '../../telemetry/loggable.ts';
import type { Area } from './area.ts';
import { describeFailure, type Failure } from './failures.ts';

/** A problem by RFC 9457, with this API's extension fields. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  code: string;
  errors?: FieldError[];
  requestId: string;
  /** Seconds. */
  retryAfter?: number;
  limit?: number;
  used?: number;
}

/** How a failure looks to the client. Never a stack, SQL, a file path or another system's text. */
export function presentFailure(failure: Failure, req: Pick<Request, 'path' | 'id'>): Problem {
  return {
    type: `urn:atrium:problem:${failure.code.toLowerCase().replaceAll('_', '-')}`,
    title: STATUS_CODES[failure.status] ?? 'Error',
    status: failure.status,
    detail: failure.detail.slice(0, 2_000),
    instance: req.path.slice(0, 2_000),
    code: failure.code,
    ...(failure.errors === undefined ? {} : { errors: failure.errors.slice(0, 20) }),
    requestId: String(req.id),
    ...(failure.retryAfterSeconds === undefined ? {} : { retryAfter: failure.retryAfterSeconds }),
    ...failure.quota,
  };
}

/** The one place where an error becomes an answer: a problem, or an area's own error format below its paths. */
export function errorHandler(areas: readonly Pick<Area, 'errors'>[] = []): ErrorRequestHandler {
  const others = areas.flatMap(({ errors = {} }) => Object.entries(errors));
  return (error: unknown, req, res, _next) => {
    // The client has gone, and the work for it was aborted. Nobody waits for an answer.
    if (res.closed && (error as Partial<Error> | null)?.name === 'AbortError') return;
    const failure = describeFailure(error, { bodyTypes: req.operation?.bodyTypes, body: req.body });
    res.locals.failureCode = failure.code;
    // Only our own faults are logged as errors. The access log shows a client's mistakes by their status.
    if (failure.status >= 500) {
      const { id: requestId } = req;
      if (isRefusal(error)) req.log.warn({ requestId, reason: failure.detail }, failure.code);
      else req.log.error({ err: loggable(error), requestId }, failure.code);
    }
    if (res.headersSent) {
      // Too late for an error answer. Cut the response so that the client sees that it is incomplete.
      res.destroy();
      return;
    }
    for (const [name, value] of Object.entries(failure.headers ?? {})) res.setHeader(name, value);
    if (failure.status === 401) res.setHeader('www-authenticate', challenge(req, failure));
    if (failure.retryAfterSeconds !== undefined) res.setHeader('retry-after', String(failure.retryAfterSeconds));
    const [, present] = others.find(([path]) => req.path.startsWith(path)) ?? [];
    try {
      if (present === undefined) sendProblem(res, presentFailure(failure, req));
      else res.status(failure.status).json(present(failure, req));
    } catch (fault) {
      // Answers are being checked, and the contract does not declare this one. Express would send the stack, as a page.
      req.log.error(
        { err: loggable(fault), requestId: req.id, code: failure.code },
        'An error answer is not declared.',
      );
      const problem = presentFailure(describeFailure(fault), req);
      res.status(problem.status).type('application/problem+json').end(JSON.stringify(problem));
    }
  };
}

/**
 * A deliberate answer about something beyond this server: no host runs computers now, or the address that a user asked
 * for does not exist. No error lies behind it, and users can cause any number of them.
 */
function isRefusal(error: unknown): error is DomainError {
  return error instanceof DomainError && error.cause === undefined;
}

function sendProblem(res: Response, problem: Problem): void {
  res.status(problem.status).type('application/problem+json').json(problem);
}

/** RFC 6750: without a credential, name only the scheme. With one, also say what is wrong with it. */
function challenge(req: Request, failure: Failure): string {
  const realm = 'Bearer realm="atrium"';
  if (req.headers.authorization === undefined || req.operation?.isPublic === true) return realm;
  return `${realm}, error="invalid_token", error_description="${failure.detail.replace(/["\\]/g, '')}"`;
}
