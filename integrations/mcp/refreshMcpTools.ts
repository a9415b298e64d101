import { DomainError } from '../../base/errors.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { EgressGuard, EgressOwner } from '../egress/guard.ts';
import { type McpFailure, mcpFailureOf, withMcpServer } from './guardedMcp.ts';
import { type DescribedTool, listMcpTools } from './mcpClient.ts';

/** The time limit for listing tools. */
const listTimeoutMs = 4_000;

interface Server {
  id: string;
  spaceId: string;
  url: string;
}

export interface McpRefreshDeps {
  egressGuard: EgressGuard;
  egressRules: { owner(spaceId: string, purpose: string): Promise<EgressOwner> };
  /** Where the result is stored. */
  mcpServers: {
    headersOf(server: Server): Promise<Record<string, string>>;
    keepTools(id: string, tools: readonly DescribedTool[]): Promise<void>;
    keepFailure(id: string, failure: McpFailure): Promise<void>;
  };
  logger: Logger;
}

/** Asks a server for its tools and stores the answer, or stores the error and returns undefined. */
export async function refreshMcpTools(
  deps: McpRefreshDeps,
  server: Server,
): Promise<readonly DescribedTool[] | undefined> {
  const { egressGuard, egressRules, mcpServers, logger } = deps;
  const [owner, headers] = await Promise.all([egressRules.owner(server.spaceId, 'mcp'), mcpServers.headersOf(server)]);
  const signal = AbortSignal.timeout(listTimeoutMs);
  const endpoint = { url: server.url, headers, signal, admitLarge: () => Promise.reject(tooLarge()) };
  try {
    const tools = await withMcpServer(egressGuard, owner, endpoint, listMcpTools);
    await mcpServers.keepTools(server.id, tools);
    return tools;
  } catch (error) {
    logger.warn({ err: error, mcpServerId: server.id }, 'An MCP server did not list its tools.');
    await mcpServers.keepFailure(server.id, mcpFailureOf(error, signal));
    return undefined;
  }
}

function tooLarge(): DomainError {
  return new DomainError('upstream', 'MCP_TOOLS_TOO_LARGE', 'The server describes its tools in more than 4 MB.');
}
