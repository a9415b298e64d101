import { type Transaction, UniqueConstraintError } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import type { ApiKeys } from './apiKeys.ts';
import { livingInvitationsOf } from './joining.ts';
import type { Sessions } from './sessions.ts';
import type { Spaces } from './spaces.ts';
import type { UserRow } from './tables.ts';
import { isEmail, normalizeEmail, type Users } from './users.ts';

/** What a sign-in has proven about a person. */
export interface Proof {
  /** The person's identity at the issuer. */
  subject?: { issuer: string; subject: string };
  /** The person's address. Undefined when the issuer has not verified it. */
  email?: string | undefined;
  name?: string | undefined;
  /** The network address. */
  address: string | null;
}

interface Parts {
  users: Users;
  spaces: Spaces;
  sessions: Sessions;
  keys: ApiKeys;
}

const firstSpaceName = 'Home';

/** Finds the account for a proof of identity, or makes one where that is allowed. */
export function createArrivals(database: Database, parts: Parts, { signUp, signUpDomains }: Config['signIn']) {
  const { users, spaces, sessions, keys } = parts;

  async function bySubject(proof: Proof, tx: Transaction): Promise<UserRow | undefined> {
    if (proof.subject === undefined) return undefined;
    const { issuer, subject } = proof.subject;
    const [row] = await select<{ userId: string }>(
      tx,
      'SELECT user_id FROM user_identities WHERE issuer = ? AND subject = ?',
      [issuer, subject],
    );
    return row === undefined ? undefined : users.byId(row.userId, tx);
  }

  const isOpenTo = (email: string) =>
    signUp === 'open' || signUpDomains.includes(email.slice(email.lastIndexOf('@') + 1));

  const isWelcome = async (email: string, tx: Transaction) =>
    isOpenTo(email) || (await livingInvitationsOf(email, tx)).length > 0;

  async function arriveOnce(proof: Proof): Promise<UserRow> {
    return transaction(database, async (tx) => {
      const known = await bySubject(proof, tx);
      const email = proof.email === undefined ? undefined : normalizeEmail(proof.email);
      if (known === undefined && (email === undefined || !isEmail(email))) throw noAddress();
      const found = known ?? (await users.byEmail(email ?? '', tx));
      if (found === undefined && !(await isWelcome(email ?? '', tx))) throw notInvited();
      const user = found ?? (await users.add(email ?? '', proof.name, tx));
      if (user.disabledAt !== null) throw new DomainError('forbidden', 'USER_DISABLED', 'This account is disabled.');
      const actor = { userId: user.id, credentialId: null, address: proof.address };
      if (known === undefined && proof.subject !== undefined) {
        await insert(tx, 'user_identities', { ...proof.subject, userId: user.id, createdAt: new Date() });
      }
      if (user.email !== email) return user;
      await settleOwner(user.id, tx);
      if (found === undefined) await spaces.create(user.id, firstSpaceName, { tx, actor });
      return user;
    });
  }

  /**
   * Called when a person has proven that the address is theirs. If it was unproven, another person may have opened the
   * account with a link that was passed on by hand, so the existing credentials are revoked.
   */
  async function settleOwner(userId: string, tx: Transaction): Promise<void> {
    const { affectedRows } = await execute(tx, 'DELETE FROM unproven_users WHERE user_id = ?', [userId]);
    if (affectedRows === 0) return;
    await sessions.revokeAll(userId, tx);
    await keys.revokeAll(userId, tx);
  }

  return {
    /**
     * The account for this proof. An open invitation admits the person, who may still accept or decline it. Throws 403
     * `NOT_INVITED`, `USER_DISABLED` or `NO_VERIFIED_EMAIL`.
     */
    async arrive(proof: Proof): Promise<UserRow> {
      return arriveOnce(proof).catch((error: unknown) => {
        // Two first sign-ins at once: the other one has made the account.
        if (error instanceof UniqueConstraintError || isUserExists(error)) return arriveOnce(proof);
        throw error;
      });
    },

    /** Whether a link mailed to this address would sign its owner in. Do not reveal the answer to strangers. */
    async mayArrive(email: string): Promise<boolean> {
      const address = normalizeEmail(email);
      if (!isEmail(address)) return false;
      const user = await users.byEmail(address);
      if (user !== undefined) return user.disabledAt === null;
      return transaction(database, (tx) => isWelcome(address, tx));
    },

    settleOwner,
  };
}

export type Arrivals = ReturnType<typeof createArrivals>;

function isUserExists(error: unknown): boolean {
  return error instanceof DomainError && error.code === 'USER_EXISTS';
}

function notInvited(): DomainError {
  return new DomainError(
    'forbidden',
    'NOT_INVITED',
    'You have no account here. Ask a member of a space for an invitation.',
  );
}

function noAddress(): DomainError {
  return new DomainError(
    'forbidden',
    'NO_VERIFIED_EMAIL',
    'Your sign-in service has not confirmed that your e-mail address is verified. Verify it there, and sign in again.',
  );
}
