import type { InvitationView } from '../../models/identity/invitations.ts';
import type { MailContent } from '../../models/mail/mails.ts';

/** The mails to people, in plain text, so that a link can be inspected before it is followed. */

export function signInMail(to: string, link: string): MailContent {
  return {
    to,
    subject: 'Your sign-in link for Atrium',
    text: `Follow this link to sign in to Atrium. It works once, for 15 minutes:

${link}

If you did not ask for this link, you can ignore this mail. Nobody can sign in without the link.
`,
  };
}

export function invitationMail(
  { email, inviter, spaceName, role }: Pick<InvitationView, 'email' | 'inviter' | 'spaceName' | 'role'>,
  link: string,
): MailContent {
  return {
    to: email,
    subject: `${inviter} invites you to ${spaceName}`,
    text: `${inviter} invites you into the space "${spaceName}" on Atrium, as ${role}. To join, follow this link within seven days:

${link}

Only ${email} can accept the invitation. If you did not expect it, you can ignore it.
`,
  };
}
