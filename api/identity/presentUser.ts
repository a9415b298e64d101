import type { SpaceAccess } from '../../models/identity/members.ts';
import type { UserRow } from '../../models/identity/tables.ts';
import type { components } from '../generated/types.gen.ts';
import { presentSpace } from './presentSpace.ts';

export function presentMe(
  user: UserRow,
  defaultSpaceId: string | undefined,
  spaces: readonly SpaceAccess[],
): components['schemas']['Me'] {
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    defaultSpaceId: defaultSpaceId ?? null,
    spaces: spaces.map(presentSpace),
  };
}
