import { bytesOf } from '../../../base/async.ts';
import { DomainError } from '../../../base/errors.ts';
import type { FileContent } from '../../../integrations/computers/hostClient.ts';
import { isText, sampleBytes } from '../../../integrations/storage/contentType.ts';
import { replaceText } from '../drive/replaceText.ts';
import { numbered, takeLines } from '../lines.ts';
import { beforehand, objectSchema, type ServerTool, serverTool } from '../tool.ts';
import {
  awake,
  type ComputerInput,
  type ComputerToolDeps,
  computerOfCall,
  computerProperty,
  type PathInput,
  pathProperty,
  unpaused,
} from './place.ts';

const look = {
  access: 'read',
  role: 'viewer',
  scope: 'computers:read',
  timeoutMs: 60_000,
  afterCrash: 'again',
} as const;
const change = { access: 'act', role: 'editor', scope: 'computers:write', timeoutMs: 120_000 } as const;
const maxEditedBytes = 8 * 1_048_576;
/** How often an edit is redone on top of a parallel edit of the same file. */
const editAttempts = 10;

/** Tools over a computer’s files. */
export function computerFileTools(deps: ComputerToolDeps): ServerTool[] {
  return [
    serverTool<PathInput & { firstLine: number; lines: number }>({
      ...look,
      name: 'computer_read',
      description:
        'Reads a text file of a computer, with line numbers. For a long file ask for a range of lines; `nextLine` is the line to continue from.',
      inputSchema: objectSchema(
        {
          path: pathProperty,
          firstLine: { type: 'integer', minimum: 1, maximum: 1_000_000_000, default: 1 },
          lines: { type: 'integer', minimum: 1, maximum: 5_000, default: 2_000 },
          computerId: computerProperty,
        },
        ['path'],
      ),
      async run(input, { turn, signal }) {
        const client = await unpaused(deps, turn, input);
        const file = await client.readFile(input.path, { signal });
        try {
          const range = { firstLine: input.firstLine, count: input.lines };
          const read = await takeLines(textOf(file, input.path), range, signal);
          const nextLine = read.hasMore ? input.firstLine + read.lines.length : null;
          return { path: input.path, sizeBytes: file.size, text: numbered(read), nextLine };
        } finally {
          file.body.destroy();
        }
      },
    }),

    serverTool<ComputerInput & { path: string; after?: string; limit: number }>({
      ...look,
      name: 'computer_list',
      description:
        'Lists a folder of a computer, sorted by name. A long list is cut; pass `next` as `after` to read on.',
      inputSchema: objectSchema({
        path: { ...pathProperty, default: '.' },
        after: {
          type: 'string',
          minLength: 1,
          maxLength: 2_000,
          description: 'The `next` that the previous call returned.',
        },
        limit: { type: 'integer', minimum: 1, maximum: 500, default: 200 },
        computerId: computerProperty,
      }),
      async run(input, { turn }) {
        const client = await unpaused(deps, turn, input);
        const { path, after, limit } = input;
        const page = await client.listFiles(path, { limit, ...(after !== undefined && { after }) });
        const entries = page.entries.map(({ name, type, size, target }) => ({
          name,
          type,
          ...(type === 'file' && { sizeBytes: size }),
          ...(target !== undefined && { target }),
        }));
        return { path, entries, next: page.nextCursor };
      },
    }),

    serverTool<PathInput & { content: string; ifExists: 'replace' | 'error' }>({
      ...change,
      // Writing the same content again gives the same file. If `ifExists` is `error`, the file may exist because of the
      // call's first run.
      afterCrash: 'again',
      name: 'computer_write',
      description: 'Writes a text file on a computer. Missing parent folders are created.',
      inputSchema: objectSchema(
        {
          path: pathProperty,
          content: { type: 'string', maxLength: maxEditedBytes, description: 'The whole content.' },
          ifExists: { enum: ['replace', 'error'], default: 'replace' },
          computerId: computerProperty,
        },
        ['path', 'content'],
      ),
      targetOf: computerOfCall(deps),
      async run(input, { turn, target, signal, isRepeated }) {
        const client = await awake(deps, turn, { computerId: target });
        const bytes = Buffer.from(input.content);
        const isNewOnly = input.ifExists === 'error';
        try {
          const options = { parents: true, signal, ...(isNewOnly && { ifNew: true }) };
          const { size } = await client.writeFile(input.path, bytes, options);
          return { path: input.path, sizeBytes: size };
        } catch (error) {
          if (!(error instanceof DomainError) || error.kind !== 'preconditionFailed') throw error;
          if (isRepeated && (await holds(bytes))) return { path: input.path, sizeBytes: bytes.length };
          throw new DomainError('conflict', 'FILE_EXISTS', `There is already a file or folder at ${input.path}.`);
        }

        async function holds(wanted: Buffer): Promise<boolean> {
          const file = await client.readFile(input.path, { signal });
          try {
            return file.size === wanted.length && wanted.equals(await wholeOf(file, input.path));
          } finally {
            file.body.destroy();
          }
        }
      },
    }),

    serverTool<PathInput & { oldText: string; newText: string; all: boolean }>({
      ...change,
      afterCrash: 'never',
      name: 'computer_edit',
      description:
        'Replaces a text in a file of a computer. `oldText` must match the file exactly and occur only once, unless `all` is set. Include enough surrounding text, without line numbers.',
      inputSchema: objectSchema(
        {
          path: pathProperty,
          oldText: { type: 'string', minLength: 1, maxLength: maxEditedBytes },
          newText: { type: 'string', maxLength: maxEditedBytes },
          all: { type: 'boolean', default: false, description: 'Replace every occurrence.' },
          computerId: computerProperty,
        },
        ['path', 'oldText', 'newText'],
      ),
      targetOf: computerOfCall(deps),
      async run(input, { turn, target, signal }) {
        const client = await beforehand(awake(deps, turn, { computerId: target }));
        for (let attempt = 1; ; attempt++) {
          const { bytes, etag } = await beforehand(readWhole());
          const { text, replaced } = replaceText(bytes.toString('utf8'), input);
          try {
            const { size } = await client.writeFile(input.path, Buffer.from(text), { ifMatch: etag, signal });
            return { path: input.path, replaced, sizeBytes: size };
          } catch (error) {
            const isOvertaken = error instanceof DomainError && error.kind === 'preconditionFailed';
            if (!isOvertaken || attempt === editAttempts) throw error;
          }
        }

        async function readWhole() {
          const file = await client.readFile(input.path, { signal });
          try {
            return { bytes: await wholeOf(file, input.path), etag: file.etag };
          } finally {
            file.body.destroy();
          }
        }
      },
    }),
  ];
}

/** A whole text file. Throws if it is too large or not text. */
async function wholeOf(file: FileContent, path: string): Promise<Buffer> {
  if (file.size > maxEditedBytes) {
    throw new DomainError('tooLarge', 'FILE_TOO_LARGE', `${path} is larger than ${maxEditedBytes / 1_048_576} MiB.`);
  }
  // Files such as those of /proc report no size.
  const tooLarge = () => new DomainError('tooLarge', 'FILE_TOO_LARGE', `${path} is too large to edit.`);
  return bytesOf(textOf(file, path), maxEditedBytes, tooLarge);
}

/** The file's bytes. Throws 422 `NOT_TEXT` as soon as they are not text. */
async function* textOf({ body }: FileContent, path: string): AsyncGenerator<Buffer> {
  let isFirst = true;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (isFirst && !isText(chunk.subarray(0, sampleBytes))) {
      throw new DomainError('unprocessable', 'NOT_TEXT', `${path} is not a text file, so its lines cannot be read.`);
    }
    isFirst = false;
    yield chunk;
  }
}
