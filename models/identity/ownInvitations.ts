import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { behindSql, type Page, type PageRequest, startOf, toPage } from '../database/pages.ts';
import { execute, select } from '../database/sql.ts';
import { type InvitationRow, invitationColumns, join } from './joining.ts';
import type { Members } from './members.ts';
import type { Role, UserRow } from './tables.ts';
import type { Users } from './users.ts';

/** An invitation as the invited person sees it. */
export interface OwnInvitation extends InvitationRow {
  spaceName: string;
  inviter: string | null;
}

/**
 * The invitations to a user's own address. The user accepts or declines them: actions of others alone never make a
 * member. An account whose address is unproven sees none, because they may be meant for another person.
 */
export function createOwnInvitations(database: Database, { users, members }: { users: Users; members: Members }) {
  async function provenUser(userId: string, tx: Transaction): Promise<UserRow | undefined> {
    const user = await users.byId(userId, tx);
    const unproven = await select(tx, 'SELECT 1 FROM unproven_users WHERE user_id = ?', [userId]);
    return unproven.length > 0 ? undefined : user;
  }

  /** An open invitation to this user's address, with its row locked. */
  async function open(userId: string, id: string, tx: Transaction): Promise<{ user: UserRow; row: InvitationRow }> {
    const user = await provenUser(userId, tx);
    const [row] = await select<InvitationRow>(
      tx,
      `SELECT ${invitationColumns} FROM invitations
        WHERE id = ? AND email = ? AND accepted_at IS NULL AND expires_at > ? FOR UPDATE`,
      [id, user?.email ?? '', new Date()],
    );
    if (user === undefined || row === undefined) throw notFound('invitation');
    return { user, row };
  }

  return {
    /** Invitations that can still be accepted, newest first. */
    async list(userId: string, page: PageRequest): Promise<Page<OwnInvitation>> {
      const next = behindSql('desc', startOf(page, 'id'));
      const rows = await transaction(database, async (tx) => {
        const user = await provenUser(userId, tx);
        if (user === undefined) return [];
        return select<OwnInvitation>(
          tx,
          `SELECT i.*, s.name AS spaceName, u.name AS inviter
             FROM (SELECT ${invitationColumns} FROM invitations
                    WHERE email = ? AND accepted_at IS NULL AND expires_at > ? ${next.sql}) i
             JOIN spaces s ON s.id = i.space_id AND s.deleted_at IS NULL
             LEFT JOIN users u ON u.id = i.created_by
            ORDER BY i.id DESC LIMIT ?`,
          [user.email, new Date(), ...next.values, page.limit + 1],
        );
      });
      return toPage(rows, page.limit, (row) => row.id);
    },

    /** Joins the space. Throws 404 when the user has no such invitation any more. */
    async accept(userId: string, id: string, actor: Actor): Promise<{ spaceId: string; role: Role }> {
      const { spaceId, role } = await transaction(database, async (tx) => {
        const { user, row } = await open(userId, id, tx);
        if (!(await join(tx, row, user, actor))) throw notFound('invitation');
        return row;
      });
      members.forget(spaceId, userId);
      return { spaceId, role };
    },

    /** Throws 404 likewise. */
    async decline(userId: string, id: string, actor: Actor): Promise<void> {
      await transaction(database, async (tx) => {
        const { row } = await open(userId, id, tx);
        await execute(tx, 'DELETE FROM invitations WHERE id = ?', [id]);
        await appendAudit(tx, row.spaceId, actor, 'invitation.declined', id);
      });
    },
  };
}
