import { DomainError } from '../../../base/errors.ts';
import type { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import type { Database } from '../../../models/database/database.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { parsePath } from '../../../models/drive/names.ts';
import { numbered } from '../lines.ts';
import { objectSchema, type ServerTool, serverTool } from '../tool.ts';
import {
  containerProperty,
  describeItem,
  findPath,
  openFile,
  openPath,
  type PathInput,
  pathProperty,
} from './place.ts';
import { readLines } from './readText.ts';

const timeoutMs = 60_000;
const common = { access: 'read', role: 'viewer', scope: 'drive:read', timeoutMs, afterCrash: 'again' } as const;
const maxEntries = 500;

/** Tools that read the drive. */
export function driveReadTools({
  database,
  storage,
}: {
  database: Database;
  storage: Pick<ObjectStore, 'read'>;
}): ServerTool[] {
  return [
    serverTool<PathInput & { after?: string; limit: number }>({
      ...common,
      name: 'drive_list',
      description:
        'Lists a folder of the drive: folders first, then files, each sorted by name. A long list is cut; pass `nextAfter` as `after` to read on.',
      inputSchema: objectSchema({
        path: { ...pathProperty, default: '/' },
        container: containerProperty,
        after: { type: 'string', maxLength: 255, description: 'Lists the entries after the entry with this name.' },
        limit: { type: 'integer', minimum: 1, maximum: maxEntries, default: 200 },
      }),
      async run(input, { turn }) {
        const isRoot = parsePath(input.path).length === 0;
        const found = isRoot ? await findPath(database, turn, input) : await openPath(database, turn, input);
        // A container that was never written to has no root.
        if (found === undefined) return { path: '/', entries: [], nextAfter: null };
        const { item, place } = found;
        const after = input.after === undefined ? undefined : await positionOf(database, item.id, input.after);
        const children = await driveModels(database).DriveItem.children(item.id, input.limit + 1, after);
        const shown = children.slice(0, input.limit);
        return {
          path: place.path,
          entries: shown.map((child) => describeItem(child)),
          nextAfter: children.length > input.limit ? shown.at(-1)?.name : null,
        };
      },
    }),

    serverTool<PathInput & { firstLine: number; lines: number }>({
      ...common,
      name: 'drive_read',
      description:
        'Reads a text file of the drive, with line numbers. For a long file ask for a range of lines; `nextLine` is the line to continue from.',
      inputSchema: objectSchema(
        {
          path: pathProperty,
          container: containerProperty,
          firstLine: { type: 'integer', minimum: 1, default: 1 },
          lines: { type: 'integer', minimum: 1, maximum: 5_000, default: 2_000 },
        },
        ['path'],
      ),
      async run(input, { turn, signal }) {
        const { item, place } = await openFile(database, turn, input);
        const range = { firstLine: input.firstLine, count: input.lines };
        const read = await readLines(storage, item, range, signal);
        const nextLine = input.firstLine + read.lines.length;
        return {
          ...describeItem(item, place.path),
          version: item.version,
          text: numbered(read),
          nextLine: read.hasMore ? nextLine : null,
        };
      },
    }),
  ];
}

async function positionOf(database: Database, folderId: string, name: string) {
  const item = await driveModels(database).DriveItem.childOf(folderId, name);
  if (item === null) {
    throw new DomainError(
      'notFound',
      'NOT_FOUND',
      `The folder has no entry named ${name}. Take \`after\` from the \`nextAfter\` of the previous call.`,
    );
  }
  return { isFile: item.isFile, nameKey: item.nameKey };
}
