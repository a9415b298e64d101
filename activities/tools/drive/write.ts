import { DomainError } from '../../../base/errors.ts';
import type { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { parsePath } from '../../../models/drive/names.ts';
import { findByPath } from '../../../models/drive/place.ts';
import { UploadSession } from '../../../models/drive/uploadSession.ts';
import type { CommonDeps } from '../../deps.ts';
import { objectSchema, type ServerTool, serverTool, type ToolContext } from '../tool.ts';
import {
  changerOf,
  containerOf,
  containerProperty,
  noteOfApp,
  openFile,
  type PathInput,
  pathProperty,
} from './place.ts';
import { readWhole } from './readText.ts';
import { replaceText } from './replaceText.ts';

type Deps = Pick<CommonDeps, 'config' | 'database'> & { storage: ObjectStore };

const common = {
  access: 'act',
  role: 'editor',
  scope: 'drive:write',
  timeoutMs: 120_000,
  afterCrash: 'again',
} as const;
const maxEditedBytes = 8 * 1_048_576;
/** How often an edit is redone on top of a parallel edit of the same file. */
const editAttempts = 10;

/** Tools that write files. A file and the record of its writing are one commit. */
export function driveWriteTools(deps: Deps): ServerTool[] {
  return [
    serverTool<PathInput & { content: string; ifExists: 'replace' | 'error' | 'rename' }>({
      ...common,
      name: 'drive_write',
      description:
        'Writes a text file to the drive, which computers see at ~/drive. Missing parent folders are created. An existing file gets the content as a new version; the earlier version is kept.',
      inputSchema: objectSchema(
        {
          path: pathProperty,
          container: containerProperty,
          content: { type: 'string', description: 'The whole content.' },
          ifExists: { enum: ['replace', 'error', 'rename'], default: 'replace' },
        },
        ['path', 'content'],
      ),
      async run(input, context) {
        const found = await findByPath(deps.database, whereOf(context.turn, input));
        if (found !== undefined && !found.item.isFile) {
          throw new DomainError('conflict', 'NAME_TAKEN', `${input.path} is a ${found.item.kind}.`);
        }
        return writeFile(deps, context, input, input.content, { onConflict: input.ifExists });
      },
    }),

    serverTool<PathInput & { oldText: string; newText: string; all: boolean }>({
      ...common,
      name: 'drive_edit',
      description:
        'Replaces a text in a file of the drive. `oldText` must match the file exactly and occur only once, unless `all` is set. Include enough surrounding text, without line numbers.',
      inputSchema: objectSchema(
        {
          path: pathProperty,
          container: containerProperty,
          oldText: { type: 'string', minLength: 1 },
          newText: { type: 'string' },
          all: { type: 'boolean', default: false, description: 'Replace every occurrence.' },
        },
        ['path', 'oldText', 'newText'],
      ),
      async run(input, context) {
        for (let attempt = 1; ; attempt++) {
          const { item } = await openFile(deps.database, context.turn, input);
          const before = await readWhole(deps.storage, item, maxEditedBytes, context.signal);
          const { text, replaced } = replaceText(before, input);
          try {
            const options = { onConflict: 'replace', ifMatch: item.etag ?? undefined, replaced } as const;
            return await writeFile(deps, context, input, text, options);
          } catch (error) {
            const isOvertaken = error instanceof DomainError && error.code === 'ETAG_MISMATCH';
            if (!isOvertaken || attempt === editAttempts) throw error;
          }
        }
      },
    }),
  ];
}

function whereOf(turn: Turn, { path, container }: PathInput) {
  const { spaceId, userId } = turn;
  return { spaceId, userId, by: changerOf(turn), containerId: containerOf(turn, container), names: parsePath(path) };
}

async function writeFile(
  { config, database, storage }: Deps,
  { turn, record }: ToolContext,
  input: PathInput,
  text: string,
  options: { onConflict: 'replace' | 'error' | 'rename'; ifMatch?: string; replaced?: number },
): Promise<unknown> {
  const where = whereOf(turn, input);
  const fileName = where.names.at(-1);
  if (fileName === undefined) throw new DomainError('invalid', 'INVALID_PATH', 'The path names no file.');
  const { onConflict, ifMatch, replaced } = options;
  await using session = new UploadSession({ database, store: storage, limits: config.drive }, turn.spaceId);
  const file = await session.receive(bytesOf(text), fileName);
  let result: unknown;
  await session.place(
    [{ target: { ...where, pathOf: 'file', fileName, onConflict, ifMatch }, file }],
    async (tx, placed) => {
      for (const { item, place } of placed) {
        const { version, size: sizeBytes } = item;
        const more = { ...(replaced !== undefined && { replaced }), ...(await noteOfApp(tx, [place])) };
        result = { path: place.path, version, sizeBytes, ...more };
      }
      await record(tx, result);
    },
  );
  return result;
}

async function* bytesOf(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text, 'utf8');
}
