import type { Request } from 'express';
import type { Role } from '../../models/identity/tables.ts';
import { normalizeEmail } from '../../models/identity/users.ts';
import { newLinkToken } from '../../models/links/links.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { spaceOf } from '../frame/auth/authorizeSpace.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { publicLink } from '../frame/links.ts';
import { requireReturnUrl } from '../frame/returnUrls.ts';
import { invitationMail } from './mails.ts';
import { presentInvitation } from './presentInvitation.ts';

/**
 * Invites an address into the space of the request's path: by mail if mail is configured, else by a link that the
 * inviter passes on. The answer does not depend on whether the address has an account.
 */
export async function invite(
  { config, identity: { invitations, mails, users }, launcher }: Pick<RouteDeps, 'config' | 'identity' | 'launcher'>,
  req: Request,
  { email, role, returnUrl }: { email: string; role: Role; returnUrl?: string },
) {
  const { space } = spaceOf(req);
  const actor = actorOf(req);
  const back = requireReturnUrl(returnUrl, config, '/returnUrl');
  const token = newLinkToken();
  const link = publicLink(config, `auth/invitations/${token}`);
  const isMailed = config.signIn.mail !== undefined;
  const inviter = (await users.byId(actor.userId))?.name ?? '';
  const facts = { email: normalizeEmail(email), inviter, spaceName: space.name, role };
  const mail = isMailed ? await mails.seal(invitationMail(facts, link), invitations.endOf(new Date())) : undefined;
  const made = await invitations.create(
    space.id,
    { email, role, token, isMailed, returnUrl: back },
    actor,
    async (tx) => {
      if (mail !== undefined) await mails.store(tx, mail);
    },
  );
  if (mail !== undefined) void launcher.startMail(mail.id);
  return { ...presentInvitation(made), ...(!isMailed && { link }) };
}
