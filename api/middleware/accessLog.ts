import type { IncomingMessage } from 'node:http';
import type { Request, RequestHandler } from 'express';
import type { Logger } from 'pino';
import { pinoHttp } from 'pino-http';

const quietOperations = new Set(['getHealth', 'getReadiness', 'getMetrics']);

/** Ids that an operator searches the log by. Other path parameters (tokens, names) stay out of it. */
const loggedParams = ['spaceId', 'threadId', 'turnId', 'operationId', 'itemId', 'computerId'];

/**
 * One line for each request. It names the contract's path and not the one that was sent, and never the query: a link may
 * carry a token in either. Headers are not logged at all.
 */
export function accessLog(logger: Logger): RequestHandler {
  return pinoHttp({
    logger,
    genReqId: (req) => req.id,
    quietReqLogger: true,
    customAttributeKeys: { reqId: 'requestId', responseTime: 'durationMs' },
    serializers: {
      req: (req: { raw: IncomingMessage }) => describe(req.raw as Request),
      res: (res: { statusCode: number }) => ({ status: res.statusCode }),
      err: (error: { type?: string; message?: string }) => ({ type: error.type, message: error.message }),
    },
    customLogLevel: (req, res, error) => {
      if (quietOperations.has((req as Request).operation?.id ?? '')) return 'trace';
      return error !== undefined || res.statusCode >= 500 ? 'warn' : 'info';
    },
    customSuccessMessage: (req, res) => `${req.method} ${(req as Request).operation?.path ?? '?'} ${res.statusCode}`,
    customErrorMessage: (req, res) => `${req.method} ${(req as Request).operation?.path ?? '?'} ${res.statusCode}`,
  }) as RequestHandler;
}

function describe(req: Request): Record<string, unknown> {
  const ids = loggedParams.flatMap((name) => {
    const value = req.params?.[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    method: req.method,
    path: req.operation?.path ?? '?',
    operationId: req.operation?.id,
    ...Object.fromEntries(ids),
    userId: req.caller?.userId,
    address: req.ip,
  };
}
