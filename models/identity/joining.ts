import type { Transaction } from 'sequelize';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { execute, insert, select } from '../database/sql.ts';
import type { Role, UserRow } from './tables.ts';

export interface InvitationRow {
  id: string;
  spaceId: string;
  email: string;
  role: Role;
  wasMailed: number;
  /** Where the invited person continues. The URL was allowed when the invitation was made. */
  returnUrl: string | null;
  createdBy: string;
  createdAt: Date;
  expiresAt: Date;
  acceptedAt: Date | null;
}

export const invitationColumns = `id, space_id, email, role, was_mailed, return_url, created_by, created_at,
  expires_at, accepted_at`;

/** The invitations of an address that can still be accepted, locked. */
export function livingInvitationsOf(email: string, tx: Transaction): Promise<InvitationRow[]> {
  return select<InvitationRow>(
    tx,
    `SELECT ${invitationColumns} FROM invitations
      WHERE email = ? AND accepted_at IS NULL AND expires_at > ? ORDER BY id FOR UPDATE`,
    [email, new Date()],
  );
}

/**
 * Makes the user a member with the invitation's role, and uses the invitation up. An existing member keeps their role.
 * False when the space is gone. The caller has locked the invitation's row.
 */
export async function join(tx: Transaction, invitation: InvitationRow, user: UserRow, actor: Actor): Promise<boolean> {
  const { id, spaceId, role } = invitation;
  const now = new Date();
  const spaces = await select(tx, 'SELECT id FROM spaces WHERE id = ? AND deleted_at IS NULL FOR UPDATE', [spaceId]);
  if (spaces.length === 0) return false;
  const members = await select(tx, 'SELECT 1 FROM space_members WHERE space_id = ? AND user_id = ?', [
    spaceId,
    user.id,
  ]);
  if (members.length === 0) {
    await insert(tx, 'space_members', { spaceId, userId: user.id, role, createdAt: now });
    await appendAudit(tx, spaceId, actor, 'member.added', user.id);
  }
  await execute(tx, 'UPDATE users SET default_space_id = ? WHERE id = ? AND default_space_id IS NULL', [
    spaceId,
    user.id,
  ]);
  await execute(tx, 'UPDATE invitations SET accepted_at = ?, accepted_by = ? WHERE id = ?', [now, user.id, id]);
  await appendAudit(tx, spaceId, actor, 'invitation.accepted', id);
  return true;
}
