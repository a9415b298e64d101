import { DomainError, notFound } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Database, transaction } from '../database/database.ts';
import { insert } from '../database/sql.ts';
import type { Arrivals } from './arrivals.ts';
import type { AuthCode, AuthCodes } from './authCodes.ts';
import type { Invitations, InvitationView } from './invitations.ts';
import { join } from './joining.ts';
import type { Members } from './members.ts';
import type { Role, UserRow } from './tables.ts';
import type { Users } from './users.ts';

/** The visitor who follows an invitation's link, signed in or not. */
export interface Guest {
  userId?: string | undefined;
  credentialId: string | null;
  /** The network address. */
  address: string | null;
}

export interface Acceptance {
  spaceId: string;
  spaceName: string;
  role: Role;
  /** Signs the guest in. Undefined for a guest who is signed in already. */
  code: AuthCode | undefined;
  /** The return URL of the invitation. */
  returnUrl: string | null;
}

interface Parts {
  users: Users;
  members: Members;
  codes: AuthCodes;
  invitations: Invitations;
  arrivals: Arrivals;
}

/**
 * Accepts an invitation by its link. The address is proven if the link was mailed to it, or if the guest is signed in
 * under it. A link passed on by hand proves nothing: otherwise an owner could become any person whom they invite. Such
 * a link opens an account only if there is none yet and no way to prove an address is configured. The account stays
 * unproven until its owner proves the address.
 */
export function createAcceptInvitation(database: Database, parts: Parts, { oidc, mail }: Config['signIn']) {
  const { users, members, codes, invitations, arrivals } = parts;

  /** Throws 403 `INVITATION_FOR_ANOTHER`, `SIGN_IN_REQUIRED` or `USER_DISABLED`, and the errors of `lockByToken`. */
  async function accept(token: string, guest: Guest): Promise<Acceptance> {
    const { user, ...acceptance } = await transaction(database, async (tx) => {
      const invitation = await invitations.lockByToken(token, tx);
      const found = await users.byEmail(invitation.email, tx);
      const mayEnter = guest.userId === undefined ? isProven(invitation, found) : found?.id === guest.userId;
      if (!mayEnter) throw guest.userId === undefined ? signInRequired(invitation) : forAnother(invitation);
      const account = found ?? (await users.add(invitation.email, undefined, tx));
      if (account.disabledAt !== null) {
        throw new DomainError('forbidden', 'USER_DISABLED', 'This account is disabled.');
      }
      if (invitation.wasMailed) await arrivals.settleOwner(account.id, tx);
      else if (found === undefined) await insert(tx, 'unproven_users', { userId: account.id, createdAt: new Date() });
      const actor = { userId: account.id, credentialId: guest.credentialId, address: guest.address };
      if (!(await join(tx, invitation, account, actor))) throw notFound('invitation');
      const code = guest.userId === undefined ? await codes.create(account.id, tx) : undefined;
      const { spaceId, spaceName, role, returnUrl } = invitation;
      return { user: account, spaceId, spaceName, role, returnUrl, code };
    });
    members.forget(acceptance.spaceId, user.id);
    return acceptance;
  }

  /** Whether holding the link is proof enough. */
  function isProven(invitation: InvitationView, found: UserRow | undefined): boolean {
    if (invitation.wasMailed) return true;
    return found === undefined && oidc === undefined && mail === undefined;
  }

  return accept;
}

function signInRequired({ email }: InvitationView): DomainError {
  return new DomainError(
    'forbidden',
    'SIGN_IN_REQUIRED',
    `Sign in as ${email} to accept this invitation. The link alone does not prove that this address is yours.`,
  );
}

function forAnother({ email }: InvitationView): DomainError {
  return new DomainError(
    'forbidden',
    'INVITATION_FOR_ANOTHER',
    `This invitation is for ${email}. Sign in with that address.`,
  );
}
