import type { InvitationRow } from '../../models/identity/joining.ts';
import { time } from '../frame/times.ts';
import type { components } from '../types.gen.ts';

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
