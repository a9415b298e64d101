import type { Transaction } from 'sequelize';
import { idPrefixes, newId } from '../../base/ids.ts';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { insert, select } from '../database/sql.ts';
import { requireLivingSpace } from './livingSpace.ts';

/** Who acts, with which credential, and from where. */
export interface Actor {
  /** Null for the operator at the command line. */
  userId: string | null;
  /** The id of a session or an API key. Null when there was none yet. */
  credentialId: string | null;
  /** The network address. Null for actions on the server itself. */
  address: string | null;
}

/**
 * The API key of work that outlives its request. A person may sign out while the work waits; a revoked key ends what it
 * began.
 */
export function apiKeyIdOf({ credentialId }: Pick<Actor, 'credentialId'>): string | null {
  return credentialId?.startsWith(`${idPrefixes.apiKey}_`) ? credentialId : null;
}

/** The operator, who may do anything but is still logged. */
export const operator: Actor = { userId: null, credentialId: null, address: null };

export type AuditAction =
  | 'space.made'
  | 'space.renamed'
  | 'signed-in'
  | 'session.revoked'
  | 'key.made'
  | 'key.revoked'
  | 'user.disabled'
  | 'user.enabled'
  | 'chat-settings.changed'
  | 'spending-caps.changed'
  | 'auto-top-up.changed'
  | 'egress.changed'
  | 'mcp-server.added'
  | 'mcp-server.removed'
  | 'member.added'
  | 'member.role-changed'
  | 'member.removed'
  | 'invitation.made'
  | 'invitation.accepted'
  | 'invitation.revoked'
  | 'invitation.declined'
  | 'computer.made'
  | 'computer.changed'
  | 'computer.deleted'
  | 'computer.woken'
  | 'computer.stopped'
  | 'computer.paused'
  | 'computer.recovered'
  | 'computer.forked'
  | 'computer.snapshot-taken'
  | 'computer.restored'
  | 'drive.conflict'
  | 'snapshot.deleted'
  | 'environment.made'
  | 'environment.changed'
  | 'environment.built'
  | 'environment.deleted'
  | 'environment.shared'
  | 'environment.unshared'
  | 'computer-secret.set'
  | 'computer-secret.deleted'
  | 'secret.set'
  | 'secret.deleted'
  | 'secrets.read'
  | 'form-secret.stored'
  | 'form-secret.used'
  | 'port-link.created'
  | 'port-link.revoked'
  | 'desktop.created'
  | 'desktop.ended'
  | 'thread-share.created'
  | 'thread-share.revoked'
  | 'desktop-link.created'
  | 'desktop-link.revoked'
  | 'browser-profile.made'
  | 'browser-profile.renamed'
  | 'browser-profile.deleted'
  | 'browser.started'
  | 'browser.ended'
  | 'browser-link.created'
  | 'browser-link.revoked'
  | 'desktop-recording.started'
  | 'desktop-recording.stopped'
  | 'desktop-recording.discarded'
  | 'desktop-recording.save-retried'
  | 'git-credential.added'
  | 'git-credential.removed'
  | 'git-installation.connected'
  | 'repository.cloned'
  | 'repository.branch-created'
  | 'repository.committed'
  | 'repository.checked-out'
  | 'repository.pushed'
  | 'repository.pulled'
  | 'repository.clone-retried'
  | 'repository.credential-changed'
  | 'app.made'
  | 'app.removed'
  | 'app.version-taken'
  | 'app.version-refused'
  | 'draft.created'
  | 'draft.committed'
  | 'draft.merged'
  | 'draft.discarded'
  | 'webhook-endpoint.made'
  | 'webhook-endpoint.changed'
  | 'webhook-endpoint.deleted'
  | 'webhook-endpoint.secret-made'
  | 'automation.made'
  | 'automation.changed'
  | 'automation.deleted'
  | 'automation.secret-made'
  | 'app.run'
  | 'app.run-cancelled'
  | 'app.computer-set'
  | 'app.webhook-secret-made'
  | 'app.schedule-paused'
  | 'app.schedule-resumed'
  | 'database.made'
  | 'database.deleted'
  | 'database.restored'
  | 'database.purged'
  | 'database.renamed'
  | 'database.rotated'
  | 'database.compacted'
  | 'database.backed-up'
  | 'database.backup-removed'
  | 'database.connection-read'
  | 'database.app-connected'
  | 'database.app-disconnected';

export interface AuditEntry extends Actor {
  id: string;
  number: string;
  action: AuditAction;
  /** The id or name of the object acted on. Never a value. */
  target: string | null;
  at: Date;
}

/**
 * Writes one line of a space's audit log in the transaction of the action itself, so neither exists without the other.
 * Lines are only added and read. None is changed or deleted while its space exists.
 */
export async function appendAudit(
  tx: Transaction,
  spaceId: string,
  actor: Actor,
  action: AuditAction,
  target: string | null,
): Promise<void> {
  await requireLivingSpace(tx, spaceId);
  await insertEntry(tx, spaceId, { actor, action, target });
}

/**
 * Writes the same line into the log of each space that the user belongs to now, because what a user does with their
 * account concerns all of them.
 */
export async function appendAuditOfUser(
  tx: Transaction,
  userId: string,
  actor: Actor,
  action: AuditAction,
  target: string | null,
): Promise<void> {
  const spaces = await select<{ id: string }>(
    tx,
    `SELECT s.id FROM space_members m JOIN spaces s ON s.id = m.space_id
      WHERE m.user_id = ? AND s.deleted_at IS NULL ORDER BY m.space_id`,
    [userId],
  );
  // Without `requireLivingSpace`: a sign-in must not wait for a space, nor fail when one is being deleted.
  for (const { id } of spaces) await insertEntry(tx, id, { actor, action, target });
}

/** A space's log, newest first. */
export async function listAudit(database: Database, spaceId: string, page: PageRequest): Promise<Page<AuditEntry>> {
  const sql = `SELECT id, CAST(number AS CHAR) AS number, user_id, credential_id, action, target,
      address, at
    FROM audit_entries WHERE space_id = ?`;
  return readPage(database, page, { sql, values: [spaceId], by: 'audit_entries.number', order: 'desc' });
}

async function insertEntry(
  tx: Transaction,
  spaceId: string,
  { actor, action, target }: Pick<AuditEntry, 'action' | 'target'> & { actor: Actor },
): Promise<void> {
  await insert(tx, 'audit_entries', {
    id: newId('auditEntry'),
    spaceId,
    userId: actor.userId,
    credentialId: actor.credentialId,
    action,
    target,
    address: actor.address,
    at: new Date(),
  });
}
