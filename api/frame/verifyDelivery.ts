import type { Request, Response } from 'express';
import { DomainError } from '../../base/errors.ts';
import { checkWebhookHeaders, verifyWebhook } from '../../integrations/webhooks/standardWebhooks.ts';
import type { RouteDeps } from './deps.ts';

interface Signed {
  /** Called only after the headers have been checked. */
  body: () => Buffer | Promise<Buffer>;
  secrets: () => Promise<readonly string[]>;
}

/** The id of a delivery that one of the secrets has signed. Throws 401. Forged ones count against their address. */
export async function verifyDelivery(
  { limits }: Pick<RouteDeps, 'limits'>,
  req: Request,
  res: Response,
  { body, secrets }: Signed,
): Promise<string> {
  const headers = {
    id: req.get('webhook-id'),
    timestamp: req.get('webhook-timestamp'),
    signature: req.get('webhook-signature'),
  };
  try {
    checkWebhookHeaders(headers, Date.now());
    return verifyWebhook(await body(), headers, await secrets(), Date.now());
  } catch (error) {
    if (error instanceof DomainError && error.code === 'INVALID_SIGNATURE') {
      await limits.failedAuthentication(req, res);
    }
    throw error;
  }
}
