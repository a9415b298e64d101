import type { InvitationRow } from '../../models/identity/joining.ts';
import type { components } from '../types.gen.ts';
import { time } from './times.ts';

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
