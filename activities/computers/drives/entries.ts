import type { DriveEntry } from '../../../integrations/computers/drives/backend.ts';
import type { Database } from '../../../models/database/database.ts';
import type { DriveItem } from '../../../models/drive/driveItem.ts';
import { treePathsOf } from '../../../models/git/repository.ts';

/** Items as the daemon gets them. A repository is a link to its working tree, which may be on another computer. */
export async function entriesOf(database: Pick<Database, 'pool'>, items: readonly DriveItem[]): Promise<DriveEntry[]> {
  const repositories = items.filter(({ kind }) => kind === 'repository').map(({ id }) => id);
  const trees = await treePathsOf(database, repositories);
  return items.map((item) => {
    const target = item.linkTarget ?? treeIn(trees.get(item.id));
    return {
      id: item.id,
      parentId: item.parentId,
      kind: item.kind,
      name: item.isRoot ? '' : item.name,
      size: item.size ?? 0,
      version: item.version,
      sha256: item.sha256?.toString('hex') ?? null,
      executable: item.isExecutable,
      modifiedAtMs: (item.modifiedAt ?? item.updatedAt).getTime(),
      ...(target !== undefined && { target }),
      revision: item.revision,
    };
  });
}

const treeIn = (treePath: string | undefined) => (treePath === undefined ? undefined : `/home/user/${treePath}`);

/** The database keeps times of these years. */
const [earliest, latest] = [Date.UTC(1000, 0, 2), Date.UTC(9999, 11, 30)];

export function timeOf(ms: number): Date {
  return new Date(Math.min(Math.max(ms, earliest), latest));
}
