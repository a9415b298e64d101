import { randomBytes } from 'node:crypto';
import { DomainError } from '../../base/errors.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { keepOutOfLogs } from '../../telemetry/knownSecrets.ts';

const secretBytes = 32;
/** Both secrets are valid for this long, so that no delivery is lost while a sender switches to the new one. */
const rotationMs = 86_400_000;

/** Where a secret is sealed: the space, and the row by its table and id. */
export interface SealedIn {
  spaceId: string;
  context: string;
}

/** A request for a secret. The same id is the same secret. */
export interface SecretRequest {
  id: string;
  /** Whether earlier secrets become invalid at once. */
  revokePrevious: boolean;
}

/** The secret of a row. All null if none was made. */
export interface SecretRow {
  secretId: string | null;
  secret: Buffer | null;
  oldUntil: Date | null;
}

/**
 * The changes to a row for a new secret. The previous secret stays valid for another day. Throws 409
 * `SECRET_RENEWED_LATELY` if the one before that is still valid: a sender that uses it would be shut out unnoticed.
 */
export function renewedRow(known: SecretRow | undefined, sealed: Buffer, { id, revokePrevious }: SecretRequest) {
  const fresh = { secret: sealed, secretId: id };
  if (known?.secret == null || revokePrevious) return { ...fresh, oldSecret: null, oldSecretUntil: null };
  const now = Date.now();
  if (known.oldUntil !== null && known.oldUntil.getTime() > now) {
    const until = known.oldUntil.toISOString();
    const detail = `The secret was renewed before, and the previous one is valid until ${until}. Wait, or set \`revokePrevious\` to end it now.`;
    throw new DomainError('conflict', 'SECRET_RENEWED_LATELY', detail);
  }
  return { ...fresh, oldSecret: known.secret, oldSecretUntil: new Date(now + rotationMs) };
}

/** The present secret, for the caller who made it with this id. Throws 409 if there is another by now. */
export async function shownSecret(
  envelope: Envelope,
  place: SealedIn,
  row: SecretRow | undefined,
  id: string,
): Promise<{ secret: string; previousUntil: Date | null }> {
  if (row?.secret == null || row.secretId !== id) {
    throw new DomainError(
      'conflict',
      'SECRET_RENEWED',
      'The secret has been renewed since, so this one is no longer shown.',
    );
  }
  const [secret = ''] = await openWebhookSecrets(envelope, place, { ...row, oldSecret: null });
  return { secret, previousUntil: row.oldUntil };
}

/** Makes a secret for signing webhooks (Standard Webhooks). Returns it sealed. */
export async function newWebhookSecret(envelope: Envelope, { spaceId, context }: SealedIn): Promise<Buffer> {
  const secret = `whsec_${randomBytes(secretBytes).toString('base64')}`;
  await keepOutOfLogs([secret]);
  return envelope.seal(spaceId, context, Buffer.from(secret, 'utf8'));
}

/** The secrets of a row that are valid now: two during a rotation. */
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
  await keepOutOfLogs(secrets);
  return secrets;
}
