import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { type Envelope, systemScope } from '../../crypto/envelope.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { hashLinkToken } from '../links/links.ts';

/** Where the code goes after the sign-in. */
export interface Destination {
  /** One of the allowed redirects. Undefined means that the page shows the code. */
  redirect?: string | undefined;
  /** The client gets this back with the code, unchanged. */
  state?: string | undefined;
  /** A link on the page that shows the code. The URL was allowed when it was given. */
  returnUrl?: string | undefined;
}

/** What a pending sign-in has to remember. */
export interface PendingSignIns {
  /** Kept until the issuer sends the browser back. `browser` is the hash of this browser's cookie. */
  oidc: Destination & { nonce: string; codeVerifier: string; browser: string };
  /** Kept until the link in the mail is followed. */
  email: Destination & { email: string };
}

export type SignInKind = keyof PendingSignIns;

const lifetimeMs: Record<SignInKind, number> = { oidc: 10 * 60_000, email: 15 * 60_000 };

/** Pending sign-ins by the hash of their token. Each can be taken once. */
export function createPendingSignIns(database: Database, envelope: Envelope) {
  async function open<Kind extends SignInKind>(hash: Buffer, sealed: Buffer): Promise<PendingSignIns[Kind]> {
    const content = await envelope.open(systemScope, contextOf(hash), sealed);
    return JSON.parse(content.toString('utf8')) as PendingSignIns[Kind];
  }

  return {
    /** Stores the content under the token, in the caller's transaction if there is one. */
    async begin<Kind extends SignInKind>(
      kind: Kind,
      token: string,
      content: PendingSignIns[Kind],
      tx?: Transaction,
    ): Promise<void> {
      const hash = hashLinkToken(token);
      const sealed = await envelope.seal(systemScope, contextOf(hash), Buffer.from(JSON.stringify(content), 'utf8'));
      const now = new Date();
      const row = { hash, kind, sealed, createdAt: now, expiresAt: endOf(kind, now) };
      await (tx === undefined
        ? transaction(database, (own) => insert(own, 'sign_ins', row))
        : insert(tx, 'sign_ins', row));
    },

    /** Reads the content without taking it. Throws 410 `SIGN_IN_EXPIRED`. */
    async peek<Kind extends SignInKind>(kind: Kind, token: string): Promise<PendingSignIns[Kind]> {
      const hash = hashLinkToken(token);
      const sql = 'SELECT sealed FROM sign_ins WHERE hash = ? AND kind = ? AND expires_at > ?';
      const [row] = await select<{ sealed: Buffer }>(database.pool, sql, [hash, kind, new Date()]);
      if (row === undefined) throw signInExpired();
      return open<Kind>(hash, row.sealed);
    },

    /** Takes the content, once. Throws 410 `SIGN_IN_EXPIRED` for a token that is unknown, used or too old. */
    async take<Kind extends SignInKind>(kind: Kind, token: string): Promise<PendingSignIns[Kind]> {
      const hash = hashLinkToken(token);
      const sealed = await transaction(database, async (tx) => {
        const [row] = await select<{ sealed: Buffer }>(
          tx,
          'SELECT sealed FROM sign_ins WHERE hash = ? AND kind = ? AND expires_at > ? FOR UPDATE',
          [hash, kind, new Date()],
        );
        if (row === undefined) throw signInExpired();
        await execute(tx, 'DELETE FROM sign_ins WHERE hash = ?', [hash]);
        return row.sealed;
      });
      return open<Kind>(hash, sealed);
    },
  };
}

/** When a sign-in that begins at `from` expires. */
export function endOf(kind: SignInKind, from: Date): Date {
  return new Date(from.getTime() + lifetimeMs[kind]);
}

function signInExpired(): DomainError {
  return new DomainError('gone', 'SIGN_IN_EXPIRED', 'This sign-in was already used or has expired. Start again.');
}

function contextOf(hash: Buffer): string {
  return `sign_ins/${hash.toString('hex')}`;
}
