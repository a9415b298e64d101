import { isIPv6 } from 'node:net';
import type { Request, RequestHandler, Response } from 'express';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { DomainError } from '../../../base/errors.ts';
import type { Config } from '../../../config/index.ts';
import type { OperationId } from '../auth/access.ts';

/** Operations that free memory of a computer. */
const releases = new Set<string>(['deleteBrowserSession', 'deleteDesktopSession'] satisfies OperationId[]);

const windowSeconds = 60;
const wrongCodesPerWindow = 10;
const mailsPerAddress = 5;
const mailWindowSeconds = 15 * 60;

/**
 * Limits of requests a minute. Each API process counts in its own memory and allows the full limit, so set the limits
 * with the number of processes in mind.
 */
export function createRateLimits(config: Pick<Config, 'http' | 'apps'>) {
  const callers = limiter(config.http.rateLimitPerMinute);
  const addresses = limiter(config.http.anonymousRateLimitPerMinute);
  const codes = new RateLimiterMemory({ points: wrongCodesPerWindow, duration: windowSeconds, keyPrefix: 'codes' });

  const deliveries = limiter(config.apps.deliveriesPerMinute);
  const mails = new RateLimiterMemory({ points: mailsPerAddress, duration: mailWindowSeconds, keyPrefix: 'mails' });

  async function take(limit: RateLimiterMemory | undefined, key: string, res: Response): Promise<void> {
    if (limit === undefined) return;
    try {
      say(res, limit, await limit.consume(key));
    } catch (result) {
      if (result instanceof Error) throw result;
      say(res, limit, result as RateLimiterRes);
      throw rateLimited(result as RateLimiterRes);
    }
  }

  return {
    /** For operations without a credential, counted by address. */
    anonymous: (async (req, res, next) => {
      if (req.operation?.isPublic === true && isLimited(req)) await take(addresses, addressOf(req), res);
      next();
    }) satisfies RequestHandler,

    /** For signed-in callers, counted by user, not by address. Freeing memory that others may need is never limited. */
    async caller(req: Request, res: Response): Promise<void> {
      if (releases.has(req.operation?.id ?? '')) return;
      if (req.caller !== undefined) await take(callers, req.caller.userId, res);
    },

    /** A refused credential counts against its address, so keys and tokens cannot be guessed quickly. */
    async failedAuthentication(req: Request, res: Response): Promise<void> {
      await take(addresses, addressOf(req), res);
    },

    /** A mail to an address that a visitor has typed, with or without an account, so that mailboxes are not flooded. */
    async mail(email: string, res: Response): Promise<void> {
      await take(mails, email, res);
    },

    /** A delivery to an app's webhook, counted by app. */
    async delivery(appId: string, res: Response): Promise<void> {
      await take(deliveries, appId, res);
    },

    /**
     * Runs the exchange of a code. Only wrong codes count. The point is taken before the exchange, so that parallel
     * guesses cannot slip through before the first has failed.
     */
    async guessing<T>(req: Request, res: Response, exchange: () => Promise<T>): Promise<T> {
      await take(codes, addressOf(req), res);
      const result = await exchange();
      await codes.reward(addressOf(req));
      return result;
    },
  };
}

export type RateLimits = ReturnType<typeof createRateLimits>;

function limiter(points: number): RateLimiterMemory | undefined {
  return points === 0 ? undefined : new RateLimiterMemory({ points, duration: windowSeconds });
}

/**
 * Probes and the pages about the API come often and cost nothing. Webhook deliveries come as often as their events, and
 * forged ones count as failed authentications.
 */
function isLimited(req: Request): boolean {
  if (req.operation?.area === 'Webhooks') return false;
  return !['/', '/healthz', '/readyz', '/metrics', '/openapi.yaml', '/openapi.json', '/docs'].includes(req.path);
}

/**
 * The client's address as the configured proxies report it (a forged X-Forwarded-For changes nothing). For IPv6 it is
 * the /64 prefix, since one household has a whole /64.
 */
export function addressOf(req: Request): string {
  const address = req.ip ?? 'unknown';
  const mapped = address.replace(/^::ffff:/, '');
  if (!isIPv6(mapped)) return mapped;
  const [head = '', tail] = mapped.split('::');
  const groups = head.split(':').filter((group) => group !== '');
  const rest = tail === undefined ? [] : tail.split(':').filter((group) => group !== '');
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - rest.length) }, () => '0');
  return [...groups, ...(tail === undefined ? [] : zeros), ...rest].slice(0, 4).join(':');
}

/** The three headers of draft-ietf-httpapi-ratelimit-headers that clients support. */
function say(res: Response, limit: RateLimiterMemory, result: RateLimiterRes): void {
  res.setHeader('ratelimit-limit', String(limit.points));
  res.setHeader('ratelimit-remaining', String(Math.max(0, result.remainingPoints)));
  res.setHeader('ratelimit-reset', String(Math.ceil(result.msBeforeNext / 1_000)));
}

function rateLimited(result: RateLimiterRes): DomainError {
  const seconds = Math.max(1, Math.ceil(result.msBeforeNext / 1_000));
  return new DomainError('rateLimited', 'RATE_LIMITED', `Too many requests. Try again in ${seconds} seconds.`, {
    retryAfterSeconds: seconds,
  });
}
