import type { RequestHandler } from 'express';
import { describeFailure } from '../failures.ts';
import type { RateLimits } from './rateLimits.ts';
import type { Validator } from './validator.ts';

/** Checks the credential that the contract requires, then its caller's rate limit. */
export function authentication(validator: Validator, limits: RateLimits): RequestHandler {
  return async (req, res, next) => {
    const refusal = await new Promise<unknown>((resolve) => {
      void validator.security(req, res, resolve);
    });
    // Where a credential is optional, a wrong one is still refused.
    const isAccepted = refusal === undefined && (req.caller !== undefined || req.authFailure === undefined);
    if (isAccepted) {
      await limits.caller(req, res);
      return next();
    }
    // The validator passes on only the refusal's status.
    const error = req.authFailure ?? refusal;
    if (describeFailure(error).status === 401) await limits.failedAuthentication(req, res);
    throw error;
  };
}
