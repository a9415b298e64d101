import type { Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { type Envelope, systemScope } from '../../crypto/envelope.ts';
import type { Database } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { type OldestFirst, oldestFirst, type Waiting } from '../sweeping/oldestFirst.ts';

export interface MailContent {
  to: string;
  subject: string;
  text: string;
  /** The mail contains a sign-in link. It is only sent if its reader may sign in at that time. */
  onlyIfMayArrive?: boolean;
}

/** A sealed mail that must still be stored. */
export interface SealedMail {
  id: string;
  sealed: Buffer;
  expiresAt: Date;
}

/**
 * Outgoing mail. A row is the intent; its workflow sends the mail and removes the row. A mail may contain a sign-in
 * link, so it is sealed while it waits, and is not sent after `expiresAt`, when the link no longer works.
 */
export function createMails(database: Database, envelope: Envelope) {
  return {
    /** Seals a mail. Store it in the transaction of the event that it reports. */
    async seal(content: MailContent, expiresAt: Date): Promise<SealedMail> {
      const id = newId('mail');
      const plaintext = Buffer.from(JSON.stringify(content), 'utf8');
      return { id, sealed: await envelope.seal(systemScope, contextOf(id), plaintext), expiresAt };
    },

    async store(tx: Transaction, { id, sealed, expiresAt }: SealedMail): Promise<void> {
      await insert(tx, 'mails', { id, sealed, createdAt: new Date(), expiresAt });
    },

    /** A mail that must still be sent. Undefined if it was sent or has expired. */
    async open(id: string): Promise<(MailContent & { expiresAt: Date }) | undefined> {
      const sql = 'SELECT sealed, expires_at FROM mails WHERE id = ? AND expires_at > ?';
      const [row] = await select<{ sealed: Buffer; expiresAt: Date }>(database.pool, sql, [id, new Date()]);
      if (row === undefined) return undefined;
      const content = await envelope.open(systemScope, contextOf(id), row.sealed);
      return { ...(JSON.parse(content.toString('utf8')) as MailContent), expiresAt: row.expiresAt };
    },

    /** Removes a mail that was sent or never will be. */
    async remove(id: string): Promise<void> {
      await execute(database.pool, 'DELETE FROM mails WHERE id = ?', [id]);
    },

    /** Mails waiting since `before`, oldest first. Each should have a workflow. */
    waiting: (page: OldestFirst<Waiting>): Promise<Waiting[]> =>
      oldestFirst(database, { table: 'mails', where: 'TRUE', time: 'created_at' }, page),
  };
}

export type Mails = ReturnType<typeof createMails>;

/** The context that a sealed mail is bound to. */
function contextOf(id: string): string {
  return `mails/${id}`;
}
