import { DomainError } from '../../../base/errors.ts';
import { moveItem, trashItem } from '../../../models/drive/changes.ts';
import { parsePath } from '../../../models/drive/names.ts';
import type { CommonDeps } from '../../deps.ts';
import { objectSchema, type ServerTool, serverTool } from '../tool.ts';
import {
  changerOf,
  containerOf,
  containerProperty,
  noteOfApp,
  openPath,
  type PathInput,
  pathProperty,
} from './place.ts';

const common = { access: 'act', role: 'editor', scope: 'drive:write', timeoutMs: 60_000, afterCrash: 'again' } as const;

/** Tools that move and remove. Each change and its record are one commit. */
export function driveChangeTools({ database }: Pick<CommonDeps, 'database'>): ServerTool[] {
  return [
    serverTool<PathInput & { to: string; ifExists: 'error' | 'rename' | 'replace' }>({
      ...common,
      name: 'drive_move',
      description:
        'Moves or renames a file or a folder of the drive. Missing parent folders of the new path are created.',
      inputSchema: objectSchema(
        {
          path: pathProperty,
          to: { ...pathProperty, description: 'The full new path, including the new name.' },
          container: containerProperty,
          ifExists: { enum: ['error', 'rename', 'replace'], default: 'error' },
        },
        ['path', 'to'],
      ),
      async run(input, { turn, record }) {
        const { spaceId, userId } = turn;
        const by = changerOf(turn);
        const { item, place } = await openPath(database, turn, input);
        const names = parsePath(input.to);
        const name = names.at(-1);
        if (name === undefined) {
          throw new DomainError('invalid', 'INVALID_PATH', 'The new path has no name at its end.');
        }
        const parent = {
          spaceId,
          userId,
          containerId: containerOf(turn, input.container),
          names: names.slice(0, -1),
        };
        let result: unknown;
        const change = { itemId: item.id, spaceId, userId, by, parent, name, onConflict: input.ifExists };
        await moveItem(database, change, async (tx, moved) => {
          result = { from: place.path, path: moved.place.path, ...(await noteOfApp(tx, [place, moved.place])) };
          await record(tx, result);
        });
        return result;
      },
    }),

    serverTool<PathInput>({
      ...common,
      name: 'drive_delete',
      description:
        'Moves a file, or a folder with all its content, to the trash of the drive. The user is asked first.',
      isDangerous: true,
      inputSchema: objectSchema({ path: pathProperty, container: containerProperty }, ['path']),
      targetOf: async (input, turn) => ({ identity: (await openPath(database, turn, input)).item.id }),
      async run(_input, { turn, target: itemId, record }) {
        const { spaceId, userId } = turn;
        let result: unknown;
        const change = { itemId, spaceId, userId, by: changerOf(turn) };
        await trashItem(database, change, async (tx, { item, place }) => {
          result = { path: place.path, kind: item.kind, inTrash: true, ...(await noteOfApp(tx, [place])) };
          await record(tx, result);
        });
        return result;
      },
    }),
  ];
}
