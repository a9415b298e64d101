import { UniqueConstraintError } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { firstOf, wellFormedJson } from '../../base/text.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { keepOutOfLogs } from '../../telemetry/knownSecrets.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';

/** Which of a server's tools need the user's approval: all, destructive ones, or none. */
export type McpApproval = 'always' | 'destructive' | 'never';

/** A tool as its server has described it. */
export interface McpTool {
  name: string;
  description?: string;
  inputSchema: Record<string, unknown>;
  isReadOnly: boolean;
  isIdempotent: boolean;
  /**
   * As it says, or does not say: unless its server promises otherwise, what acts may destroy. Missing in lists of
   * earlier versions.
   */
  mayDestroy?: boolean;
}

export interface McpServer {
  id: string;
  spaceId: string;
  name: string;
  url: string;
  headerNames: string[];
  approval: McpApproval;
  /** Whether its tools may be given what people type into forms. */
  takesSecrets: boolean;
  /** What it listed last; null before it ever has. */
  tools: McpTool[] | null;
  listedAt: Date | null;
  failedAt: Date | null;
  failureCode: string | null;
  failure: string | null;
  createdBy: string;
  createdAt: Date;
}

const maxServers = 50;
const maxKeptBytes = 4 * 1_048_576;

const columns = `id, space_id, name, url, header_names, approval, takes_secrets, tools, listed_at, failed_at,
  failure_code, failure, created_by, created_at`;

/** The MCP servers of spaces. Their headers are sealed; nothing but a call of the server opens them. */
export function createMcpServers(database: Database, envelope: Envelope) {
  async function find(sql: string, values: unknown[]): Promise<McpServer[]> {
    const rows = await select(database.pool, `SELECT ${columns} FROM mcp_servers WHERE ${sql}`, values);
    return rows.map((row) => ({
      ...(row as McpServer),
      headerNames: JSON.parse(String(row.headerNames)) as string[],
      takesSecrets: Boolean(row.takesSecrets),
      tools: row.tools === null ? null : (JSON.parse(String(row.tools)) as McpTool[]),
    }));
  }

  return {
    list: (spaceId: string) => find('space_id = ? ORDER BY name', [spaceId]),

    async get(spaceId: string, id: string): Promise<McpServer> {
      const [server] = await find('space_id = ? AND id = ?', [spaceId, id]);
      if (server === undefined) throw notFound('MCP server');
      return server;
    },

    /** Throws 409 `MCP_SERVER_NAME_TAKEN`, 422 `TOO_MANY_MCP_SERVERS`. The same id again is the same server. */
    async add(
      fields: Pick<McpServer, 'id' | 'spaceId' | 'name' | 'url' | 'approval' | 'takesSecrets'> & {
        headers: Record<string, string>;
      },
      actor: Actor & { userId: string },
    ): Promise<void> {
      const { id, spaceId, name, url, approval, takesSecrets, headers } = fields;
      await keepOutOfLogs(secretPartsOf(headers));
      const sealed = await envelope.seal(spaceId, sealedContext(id), Buffer.from(JSON.stringify(headers), 'utf8'));
      await transaction(database, async (tx) => {
        await lockLivingSpace(tx, spaceId);
        const known = await select<{ id: string }>(tx, 'SELECT id FROM mcp_servers WHERE space_id = ?', [spaceId]);
        if (known.some((server) => server.id === id)) return;
        if (known.length >= maxServers) {
          throw new DomainError(
            'unprocessable',
            'TOO_MANY_MCP_SERVERS',
            `A space has at most ${maxServers} MCP servers.`,
          );
        }
        await insert(tx, 'mcp_servers', {
          id,
          spaceId,
          name,
          url,
          sealed,
          headerNames: Object.keys(headers),
          approval,
          takesSecrets,
          createdBy: actor.userId,
          createdAt: new Date(),
        });
        await appendAudit(tx, spaceId, actor, 'mcp-server.added', id);
      }).catch((error: unknown) => {
        if (!(error instanceof UniqueConstraintError)) throw error;
        throw new DomainError('conflict', 'MCP_SERVER_NAME_TAKEN', 'The space already has an MCP server of this name.');
      });
    },

    /** Throws 404. */
    async remove(spaceId: string, id: string, actor: Actor): Promise<void> {
      await transaction(database, async (tx) => {
        const sql = 'DELETE FROM mcp_servers WHERE space_id = ? AND id = ?';
        const { affectedRows } = await execute(tx, sql, [spaceId, id]);
        if (affectedRows === 0) throw notFound('MCP server');
        await appendAudit(tx, spaceId, actor, 'mcp-server.removed', id);
      });
    },

    /** The headers in clear, for a call of the server. */
    async headersOf({ id, spaceId }: Pick<McpServer, 'id' | 'spaceId'>): Promise<Record<string, string>> {
      const rows = await select(database.pool, 'SELECT sealed FROM mcp_servers WHERE id = ?', [id]);
      if (rows[0] === undefined) throw notFound('MCP server');
      const opened = await envelope.open(spaceId, sealedContext(id), rows[0].sealed as Buffer);
      const headers = JSON.parse(opened.toString('utf8')) as Record<string, string>;
      await keepOutOfLogs(secretPartsOf(headers));
      return headers;
    },

    /** Stores the server's tool list, for all processes and for when it is down. */
    async keepTools(id: string, tools: readonly McpTool[]): Promise<void> {
      const text = wellFormedJson(JSON.stringify(tools));
      if (Buffer.byteLength(text) > maxKeptBytes) {
        throw new DomainError(
          'upstream',
          'MCP_TOOLS_TOO_LARGE',
          'The tool descriptions of the server are larger than 4 MiB.',
        );
      }
      await execute(
        database.pool,
        'UPDATE mcp_servers SET tools = ?, listed_at = ?, failed_at = NULL, failure_code = NULL, failure = NULL WHERE id = ?',
        [text, new Date(), id],
      );
    },

    async keepFailure(id: string, { code, text }: { code: string; text: string }): Promise<void> {
      await execute(database.pool, 'UPDATE mcp_servers SET failed_at = ?, failure_code = ?, failure = ? WHERE id = ?', [
        new Date(),
        code.slice(0, 60),
        firstOf(text, 500).toWellFormed(),
        id,
      ]);
    },
  };
}

export type McpServers = ReturnType<typeof createMcpServers>;

/** The parts of headers that must not be shown: their values, and tokens without the `Bearer` prefix. */
export function secretPartsOf(headers: Record<string, string>): string[] {
  return Object.values(headers).flatMap((value) => [value, ...value.split(/\s+/).filter((part) => part.length >= 8)]);
}

function sealedContext(id: string): string {
  return `mcp_servers/${id}`;
}

/** The state of all spaces' MCP servers, for the operator. */
export interface McpOverview {
  servers: number;
  spaces: number;
  /** Those that failed when they were last asked, the latest first, ten at most. `MCP_REFUSED` wants other headers. */
  failed: { name: string; spaceId: string; code: string | null }[];
}

export async function readMcpOverview({ pool }: Pick<Database, 'pool'>): Promise<McpOverview> {
  const living = 'FROM mcp_servers m JOIN spaces s ON s.id = m.space_id WHERE s.deleted_at IS NULL';
  const [counts] = await select(pool, `SELECT COUNT(*) AS servers, COUNT(DISTINCT m.space_id) AS spaces ${living}`);
  const failed = await select(
    pool,
    `SELECT m.name, m.space_id, m.failure_code AS code ${living} AND m.failed_at IS NOT NULL ORDER BY m.failed_at DESC LIMIT 10`,
  );
  return {
    servers: Number(counts?.servers),
    spaces: Number(counts?.spaces),
    failed: failed as McpOverview['failed'],
  };
}
