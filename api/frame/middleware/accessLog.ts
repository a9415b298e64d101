import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';
import { pinoHttp } from 'pino-http';

const quietOperations = new Set(['getHealth', 'getReadiness', 'getMetrics']);

/** Ids by which an operator searches the log. Other path parameters (tokens, names) stay out of it. */
const loggedParams = ['spaceId', 'threadId', 'turnId', 'operationId', 'itemId', 'computerId'];

const addresses = new WeakMap<IncomingMessage, string | undefined>();

/**
 * Writes one line for each request. It has the contract's path instead of the requested one, and never the query: a
 * link may carry a token in either. Headers are not logged at all.
 */
export function accessLog(logger: Logger): RequestHandler {
  const message = (req: IncomingMessage, res: ServerResponse) =>
    `${req.method} ${(req as Request).operation?.path ?? '?'} ${res.statusCode}`;
  const line = (req: IncomingMessage, res: ServerResponse, { durationMs }: { durationMs?: number }) => ({
    request: describe(req as Request, res),
    status: res.statusCode,
    // The error code that the caller was given.
    code: (res as Response).locals?.failureCode as string | undefined,
    ...((req as Request).closeCode !== undefined && { closeCode: (req as Request).closeCode }),
    durationMs,
  });
  const log = pinoHttp({
    logger,
    genReqId: (req) => req.id,
    quietReqLogger: true,
    quietResLogger: true,
    customAttributeKeys: { reqId: 'requestId', responseTime: 'durationMs' },
    // By default pino-http would log the request when it begins, before the operation and the caller are known.
    serializers: { req: () => undefined },
    customLogLevel: (req, res, error) => {
      if (quietOperations.has((req as Request).operation?.id ?? '')) return 'trace';
      return error !== undefined || res.statusCode >= 500 ? 'warn' : 'info';
    },
    customSuccessMessage: message,
    customErrorMessage: message,
    customSuccessObject: line,
    // The error handler logs the reason in a line of its own.
    customErrorObject: (req, res, _error, values) => line(req, res, values),
  }) as RequestHandler;
  return (req, res, next) => {
    // Keep the address: when the line is written, a broken-off body may have detached the socket from its request.
    addresses.set(req, req.ip);
    return log(req, res, next);
  };
}

function describe(req: Request, res: ServerResponse): Record<string, unknown> {
  const ids = loggedParams.flatMap((name) => {
    const value = req.pathParams?.[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  // A request that begins a turn has the turn's id only in its answer.
  const turnId = res.getHeader('x-turn-id');
  return {
    method: req.method,
    path: req.operation?.path ?? '?',
    operationId: req.operation?.id,
    ...Object.fromEntries(ids),
    ...(turnId !== undefined && { turnId }),
    userId: req.caller?.userId,
    address: addresses.get(req),
  };
}
