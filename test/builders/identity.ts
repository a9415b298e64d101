import { randomBytes } from 'node:crypto';
import { createIdentity, type Identity, openEnvelope } from '../../models/identity/index.ts';
import type { SpaceAccess } from '../../models/identity/members.ts';
import type { UserRow } from '../../models/identity/tables.ts';
import type { TestEnvironment } from '../support/environment.ts';

/** Test files share databases, so names contain a part that is unique to the file. */
const fileId = randomBytes(4).toString('hex');
let counter = 0;

/** The identity services of a test's database. */
export async function buildIdentity({ database, config }: TestEnvironment): Promise<Identity> {
  return createIdentity(database, await openEnvelope(database, config), config);
}

/** A new signed-in user. */
export async function buildUser(identity: Identity, name = 'person'): Promise<{ user: UserRow; token: string }> {
  counter += 1;
  const user = await identity.users.add(`${name}-${fileId}-${counter}@example.com`);
  return { user, token: await identity.sessions.create(user.id) };
}

/** A space owned by this user. */
export function buildSpace(identity: Identity, userId: string, name = 'Space'): Promise<SpaceAccess> {
  return identity.spaces.create(userId, name);
}
