import type { Database } from '../../../models/database/database.ts';
import { searchDrive } from '../../../models/drive/search.ts';
import { objectSchema, type ServerTool, serverTool } from '../tool.ts';
import { containerOf, containerProperty, describeItem, type PathInput } from './place.ts';

/** The most reads of the index for one search. A read may find fewer items than its limit, although more follow. */
const maxLooks = 8;

/** Tools that find files in the drive. */
export function driveSearchTool({ database }: { database: Database }): ServerTool {
  return serverTool<{
    query: string;
    container: PathInput['container'];
    in: 'names' | 'texts' | 'both';
    limit: number;
  }>({
    name: 'drive_search',
    description:
      'Finds files and folders of the drive by their names and texts. Every word of the query must be the beginning of a word there. Case and accents do not matter.',
    access: 'read',
    role: 'viewer',
    scope: 'drive:read',
    timeoutMs: 60_000,
    afterCrash: 'again',
    inputSchema: objectSchema(
      {
        query: { type: 'string', minLength: 1, maxLength: 500 },
        container: containerProperty,
        in: { enum: ['names', 'texts', 'both'], default: 'both' },
        limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
      },
      ['query'],
    ),
    async run(input, { turn, signal }) {
      const fields = { names: ['name'], texts: ['text'], both: ['name', 'text'] } as const;
      const request = {
        spaceId: turn.spaceId,
        containerId: containerOf(turn, input.container),
        query: input.query,
        fields: fields[input.in],
      };
      const found = [];
      let after: Awaited<ReturnType<typeof searchDrive>>['next'];
      for (let look = 0; look < maxLooks && found.length < input.limit; look++) {
        signal.throwIfAborted();
        const part = await searchDrive(database, { ...request, limit: input.limit - found.length, after });
        found.push(...part.found);
        after = part.next;
        if (after === undefined) break;
      }
      return {
        found: found.map(({ item, place, fields: where }) => ({ ...describeItem(item, place.path), foundIn: where })),
        hasMore: after !== undefined,
      };
    },
  });
}
