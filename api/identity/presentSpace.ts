import type { SpaceAccess } from '../../models/identity/members.ts';
import { time } from '../frame/times.ts';
import type { components } from '../generated/types.gen.ts';

export function presentSpace({ space, role }: SpaceAccess): components['schemas']['Space'] {
  return { id: space.id, name: space.name, role, createdAt: time(space.createdAt) };
}
