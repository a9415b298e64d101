import { createHash } from 'node:crypto';
import { DomainError } from '../../../base/errors.ts';
import { firstOf, wellFormedJson } from '../../../base/text.ts';
import { mcpFailureOf, withMcpServer } from '../../../integrations/mcp/guardedMcp.ts';
import { callMcpTool } from '../../../integrations/mcp/mcpClient.ts';
import { refreshMcpTools } from '../../../integrations/mcp/refreshMcpTools.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { type McpServer, type McpServers, type McpTool, secretPartsOf } from '../../../models/mcp/mcpServers.ts';
import { redactorFor } from '../../../models/secrets/redactor.ts';
import type { Logger } from '../../../telemetry/logger.ts';
import {
  beforehand,
  type EgressDeps,
  type InputSchema,
  type ServerTool,
  serverTool,
  type ToolSource,
} from '../tool.ts';

interface McpDeps extends EgressDeps {
  mcpServers: McpServers;
  logger: Logger;
}

/** How old a tool list may be before the server is asked again. */
const freshMs = 5 * 60_000;
/** A server that was down is not asked again for this long, so that no turn waits for it. */
const retryAfterMs = 30_000;
const callTimeoutMs = 10 * 60_000;
const maxNameLength = 64;

/** The tools of a space's MCP servers, named `mcp_<server>_<tool>`. */
export function mcpToolSource(deps: McpDeps): ToolSource {
  return {
    async toolsFor(turn: Turn): Promise<readonly ServerTool[]> {
      const servers = await deps.mcpServers.list(turn.spaceId);
      const tools = await Promise.all(
        servers.map(async (server) => (await currentTools(deps, server)).map((tool) => toolOf(deps, server, tool))),
      );
      return tools.flat();
    },
  };
}

/** The server's current tools, or its last known ones if it does not answer. */
async function currentTools(deps: McpDeps, server: McpServer): Promise<readonly McpTool[]> {
  const now = Date.now();
  const known = server.tools ?? [];
  if (server.tools !== null && server.listedAt !== null && now - server.listedAt.getTime() < freshMs) return known;
  if (server.failedAt !== null && now - server.failedAt.getTime() < retryAfterMs) return known;
  return (await refreshMcpTools(deps, server)) ?? known;
}

function toolOf(deps: McpDeps, server: McpServer, tool: McpTool): ServerTool {
  const isAsked =
    server.approval === 'always' || (server.approval === 'destructive' && (tool.mayDestroy ?? !tool.isReadOnly));
  return serverTool<Record<string, unknown>>({
    name: nameOf(server, tool),
    description: tool.description ?? `${tool.name} of ${server.name}`,
    // The server checks its own inputs.
    inputSchema: tool.inputSchema as InputSchema,
    access: tool.isReadOnly ? 'read' : 'act',
    role: tool.isReadOnly ? 'viewer' : 'editor',
    scope: 'mcp',
    timeoutMs: callTimeoutMs,
    isDangerous: isAsked,
    takesSecrets: server.takesSecrets,
    afterCrash: tool.isReadOnly || tool.isIdempotent ? 'again' : 'never',
    targetOf: () => ({ identity: identityOf(server, tool), host: new URL(server.url).host }),
    async run(input, { signal, admitLarge }) {
      const [owner, headers] = await beforehand(
        Promise.all([deps.egressRules.owner(server.spaceId, 'mcp'), deps.mcpServers.headersOf(server)]),
      );
      const endpoint = { url: server.url, headers, signal, admitLarge };
      const answered = await withMcpServer(deps.egressGuard, owner, endpoint, (guarded) =>
        callMcpTool(guarded, { name: tool.name, input }),
      ).catch((error: unknown) => {
        signal.throwIfAborted();
        throw new DomainError('upstream', 'MCP_CALL_FAILED', mcpFailureOf(error, signal).text, { cause: error });
      });
      // A server may repeat the secret headers that it was sent.
      const redactor = await redactorFor(secretPartsOf(headers));
      const result = redactor.json(answered) as typeof answered;
      if (!result.isError) return result.output;
      const text = typeof result.output === 'string' ? result.output : JSON.stringify(result.output);
      throw new DomainError('upstream', 'MCP_TOOL_FAILED', firstOf(text, 10_000));
    },
  });
}

/**
 * A hash of the server and its description of the tool. If another server takes the name, or if the server describes
 * its tool differently, this is no longer the tool that the model called and the person approved.
 */
function identityOf({ id, url }: McpServer, tool: McpTool): string {
  const described = JSON.stringify({ id, url, tool }, (_key, value: unknown) => {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    // Sort the keys: a server may list the same description in another order.
    return isObject ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) : value;
  });
  return createHash('sha256').update(wellFormedJson(described)).digest('base64url');
}

/** A name that every provider accepts; a name that is too long keeps its beginning, plus a hash of the whole. */
function nameOf(server: McpServer, tool: McpTool): string {
  const name = `mcp_${server.name}_${tool.name}`.replace(/[^A-Za-z0-9_-]/g, '_');
  if (name.length <= maxNameLength && name.endsWith(tool.name)) return name;
  const hash = createHash('sha256').update(tool.name).digest('hex').slice(0, 8);
  return `${name.slice(0, maxNameLength - 9)}_${hash}`;
}
