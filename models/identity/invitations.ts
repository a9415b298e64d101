import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, insert, select } from '../database/sql.ts';
import { hashLinkToken } from '../links/links.ts';
import { type InvitationRow, invitationColumns } from './joining.ts';
import type { Role } from './tables.ts';
import { isEmail, normalizeEmail } from './users.ts';

const lifetimeMs = 7 * 86_400_000;
/** Open invitations per space. Prevents floods of mail. */
const maxLiving = 200;

export interface NewInvitation {
  email: string;
  role: Role;
  /** The link's token. Only its hash is stored. */
  token: string;
  /** Whether the link is mailed to the address itself. Following it then proves the address. */
  isMailed: boolean;
  returnUrl?: string | undefined;
}

/** What an invitation's page shows to every holder of its link. */
export interface InvitationView extends InvitationRow {
  spaceName: string;
  inviter: string;
}

/** When an invitation made at `from` expires. */
function endOf(from: Date): Date {
  return new Date(from.getTime() + lifetimeMs);
}

/** Invitations into spaces: each for one address, usable once, for seven days. */
export function createInvitations(database: Database) {
  return {
    endOf,

    /**
     * Makes an invitation, which replaces an earlier one of the same address to the same space. `alongside` writes
     * further rows in the same transaction. Throws 409 `ALREADY_MEMBER`, 422 `INVALID_EMAIL` or `TOO_MANY_INVITATIONS`.
     */
    async create(
      spaceId: string,
      { email, role, token, isMailed, returnUrl }: NewInvitation,
      actor: Actor & { userId: string },
      alongside: (tx: Transaction) => Promise<void>,
    ): Promise<InvitationRow> {
      const address = normalizeEmail(email);
      if (!isEmail(address)) {
        throw new DomainError('unprocessable', 'INVALID_EMAIL', 'This is not an e-mail address.', {
          errors: [{ pointer: '/email', detail: 'is not an e-mail address' }],
        });
      }
      const now = new Date();
      const row: InvitationRow = {
        id: newId('invitation'),
        spaceId,
        email: address,
        role,
        wasMailed: isMailed ? 1 : 0,
        returnUrl: returnUrl ?? null,
        createdBy: actor.userId,
        createdAt: now,
        expiresAt: endOf(now),
        acceptedAt: null,
      };
      await transaction(database, async (tx) => {
        await lockLivingSpace(tx, spaceId);
        await assertNotMember(tx, spaceId, address);
        await execute(tx, 'DELETE FROM invitations WHERE space_id = ? AND email = ? AND accepted_at IS NULL', [
          spaceId,
          address,
        ]);
        await assertRoom(tx, spaceId, now);
        await insert(tx, 'invitations', {
          id: row.id,
          tokenHash: hashLinkToken(token),
          spaceId,
          email: address,
          role,
          wasMailed: row.wasMailed,
          returnUrl: row.returnUrl,
          createdBy: row.createdBy,
          createdAt: now,
          expiresAt: row.expiresAt,
        });
        await appendAudit(tx, spaceId, actor, 'invitation.made', row.id);
        await alongside(tx);
      });
      return row;
    },

    /** A space's invitations that can still be accepted, newest first. */
    async list(spaceId: string, page: PageRequest): Promise<Page<InvitationRow>> {
      const sql = `SELECT ${invitationColumns} FROM invitations
        WHERE space_id = ? AND accepted_at IS NULL AND expires_at > ?`;
      return readPage(database, page, { sql, values: [spaceId, new Date()], by: 'id', order: 'desc' });
    },

    /** Ends an invitation, so that its link stops working. Throws 404 if it is missing or was accepted. */
    async revoke(spaceId: string, id: string, actor: Actor): Promise<void> {
      await transaction(database, async (tx) => {
        const { affectedRows } = await execute(
          tx,
          'DELETE FROM invitations WHERE space_id = ? AND id = ? AND accepted_at IS NULL',
          [spaceId, id],
        );
        if (affectedRows === 0) throw notFound('invitation');
        await appendAudit(tx, spaceId, actor, 'invitation.revoked', id);
      });
    },

    /** The invitation of a link. Throws 404 `NOT_FOUND`, 410 `INVITATION_USED` or `INVITATION_EXPIRED`. */
    async byToken(token: string): Promise<InvitationView> {
      return transaction(database, (tx) => findByToken(tx, token));
    },

    /** The same, with the row locked. */
    lockByToken: (token: string, tx: Transaction): Promise<InvitationView> => findByToken(tx, token, 'FOR UPDATE'),
  };
}

export type Invitations = ReturnType<typeof createInvitations>;

async function findByToken(tx: Transaction, token: string, lock: '' | 'FOR UPDATE' = ''): Promise<InvitationView> {
  const [row] = await select<InvitationRow>(
    tx,
    `SELECT ${invitationColumns} FROM invitations WHERE token_hash = ? ${lock}`,
    [hashLinkToken(token)],
  );
  if (row === undefined) throw notFound('invitation');
  const [names] = await select<{ spaceName: string; inviter: string | null }>(
    tx,
    `SELECT s.name AS spaceName, u.name AS inviter FROM spaces s LEFT JOIN users u ON u.id = ?
      WHERE s.id = ? AND s.deleted_at IS NULL`,
    [row.createdBy, row.spaceId],
  );
  if (names === undefined) throw notFound('invitation');
  if (row.acceptedAt !== null) {
    throw new DomainError('gone', 'INVITATION_USED', 'This invitation has already been accepted. Sign in instead.');
  }
  if (row.expiresAt.getTime() <= Date.now()) {
    throw new DomainError('gone', 'INVITATION_EXPIRED', 'This invitation has expired. Ask for a new one.');
  }
  return { ...row, spaceName: names.spaceName, inviter: names.inviter ?? 'Somebody' };
}

async function assertNotMember(tx: Transaction, spaceId: string, email: string): Promise<void> {
  const members = await select(
    tx,
    'SELECT 1 FROM space_members m JOIN users u ON u.id = m.user_id WHERE m.space_id = ? AND u.email = ?',
    [spaceId, email],
  );
  if (members.length > 0) throw new DomainError('conflict', 'ALREADY_MEMBER', 'This person is already a member.');
}

async function assertRoom(tx: Transaction, spaceId: string, now: Date): Promise<void> {
  const [living] = await select<{ count: number }>(
    tx,
    'SELECT COUNT(*) AS count FROM invitations WHERE space_id = ? AND accepted_at IS NULL AND expires_at > ?',
    [spaceId, now],
  );
  if ((living?.count ?? 0) < maxLiving) return;
  throw new DomainError(
    'unprocessable',
    'TOO_MANY_INVITATIONS',
    `A space has at most ${maxLiving} open invitations. Revoke some, or wait until they are accepted.`,
  );
}
