import type { Request, Response } from 'express';
import { verifyWebhook } from '../../integrations/webhooks/standardWebhooks.ts';
import type { RouteDeps } from './deps.ts';

/** The id of a delivery that one of the secrets has signed. Throws 401; forged ones count against their address. */
export async function verifyDelivery(
  { limits }: Pick<RouteDeps, 'limits'>,
  req: Request,
  res: Response,
  { body, secrets }: { body: Buffer; secrets: readonly string[] },
): Promise<string> {
  const headers = {
    id: req.get('webhook-id'),
    timestamp: req.get('webhook-timestamp'),
    signature: req.get('webhook-signature'),
  };
  try {
    return verifyWebhook(body, headers, secrets, Date.now());
  } catch (error) {
    await limits.failedAuthentication(req, res);
    throw error;
  }
}
