import { newId } from '../../base/ids.ts';
import type { RepositoryRef } from '../../integrations/git/types.ts';
import type { TestEnvironment } from '../support/environment.ts';
import { buildIdentity, buildSpace, buildUser } from './identity.ts';

/** The row of a repository without saved data, in a space of its own. */
export async function buildRepositoryRow(environment: TestEnvironment): Promise<RepositoryRef> {
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const ref = { spaceId: space.id, itemId: newId('driveItem') };
  await environment.database.pool.query(
    `INSERT INTO git_repositories (item_id, space_id, computer_id, tree_path, url, operation_id, status, status_at,
                                   version, created_by, created_at)
     VALUES (?, ?, ?, 'a', 'https://git.example.com/a.git', 'op_1', 'cloning', NOW(3), 0, ?, NOW(3))`,
    [ref.itemId, ref.spaceId, newId('computer'), user.id],
  );
  return ref;
}
