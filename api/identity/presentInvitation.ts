import type { InvitationRow } from '../../models/identity/joining.ts';
import type { OwnInvitation } from '../../models/identity/ownInvitations.ts';
import { time } from '../frame/times.ts';
import type { components } from '../generated/types.gen.ts';

export function presentInvitation(invitation: InvitationRow): components['schemas']['Invitation'] {
  const { id, email, role, wasMailed, createdBy, createdAt, expiresAt } = invitation;
  return {
    id,
    email,
    role,
    mailed: wasMailed === 1,
    invitedBy: createdBy,
    createdAt: time(createdAt),
    expiresAt: time(expiresAt),
  };
}

/** As the invited person sees it. */
export function presentOwnInvitation(invitation: OwnInvitation): components['schemas']['OwnInvitation'] {
  const { id, spaceId, spaceName, inviter, role, createdAt, expiresAt } = invitation;
  return { id, spaceId, spaceName, inviter, role, createdAt: time(createdAt), expiresAt: time(expiresAt) };
}
