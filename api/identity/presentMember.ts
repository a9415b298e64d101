import type { Member } from '../../models/identity/members.ts';
import { time } from '../frame/times.ts';
import type { components } from '../generated/types.gen.ts';

export function presentMember({ user, role, joinedAt }: Member): components['schemas']['Member'] {
  return { userId: user.id, email: user.email, name: user.name, role, joinedAt: time(joinedAt) };
}
