import { randomBytes } from 'node:crypto';
import type { Envelope } from '../crypto/envelope.ts';
import { keepOutOfLogs } from '../telemetry/knownSecrets.ts';

const secretBytes = 32;
/** Both secrets hold for so long, so that no delivery is lost while a sender takes over the new one. */
export const rotationMs = 86_400_000;

/** Where a secret is sealed: the space, and the row by its table and id. */
export interface SealedIn {
  spaceId: string;
  context: string;
}

/** A new secret that senders of webhooks sign with, by Standard Webhooks, and as it is kept. */
export async function newWebhookSecret(
  envelope: Envelope,
  { spaceId, context }: SealedIn,
): Promise<{ secret: string; sealed: Buffer }> {
  const secret = `whsec_${randomBytes(secretBytes).toString('base64')}`;
  keepOutOfLogs([secret]);
  return { secret, sealed: await envelope.seal(spaceId, context, Buffer.from(secret, 'utf8')) };
}

/** The secrets of a row that hold now: two during a rotation. */
export async function openWebhookSecrets(
  envelope: Envelope,
  { spaceId, context }: SealedIn,
  row: { secret: Buffer | null; oldSecret: Buffer | null; oldUntil: Date | null },
): Promise<string[]> {
  const isRotating = row.oldUntil !== null && row.oldUntil > new Date();
  const sealed = [row.secret, isRotating ? row.oldSecret : null].filter((one) => one !== null);
  const secrets = await Promise.all(
    sealed.map(async (one) => (await envelope.open(spaceId, context, one)).toString('utf8')),
  );
  keepOutOfLogs(secrets);
  return secrets;
}
