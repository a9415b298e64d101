import type { SessionRow } from '../../models/identity/tables.ts';
import { time } from '../frame/times.ts';
import type { components } from '../generated/types.gen.ts';

export function presentSession(session: SessionRow, currentId: string | undefined): components['schemas']['Session'] {
  return {
    id: session.id,
    label: session.label,
    current: session.id === currentId,
    createdAt: time(session.createdAt),
    expiresAt: time(session.expiresAt),
  };
}
