import type { Role } from './tables.ts';

const rank: Record<Role, number> = { viewer: 1, editor: 2, owner: 3 };

/** Whether `role` includes `minimum`. An owner may do what an editor may, and an editor what a viewer may. */
export function isAtLeast(role: Role, minimum: Role): boolean {
  return rank[role] >= rank[minimum];
}
