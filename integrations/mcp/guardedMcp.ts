import { DomainError } from '../../base/errors.ts';
import { guardedFetch } from '../egress/fetch.ts';
import type { EgressGuard, EgressOwner } from '../egress/guard.ts';
import type { McpEndpoint } from './mcpClient.ts';

const connectTimeoutMs = 4_000;
const idleTimeoutMs = 10 * 60_000;

/** Why a server gave no answer. In our own words, since a network error may reveal internal hosts. */
export interface McpFailure {
  /**
   * `MCP_REFUSED`: the server does not accept the headers. A code of the egress guard: the address may not be reached.
   */
  code: string;
  text: string;
}

/** Works with an MCP server through the egress guard, and closes the connections afterwards. */
export async function withMcpServer<T>(
  guard: EgressGuard,
  owner: EgressOwner,
  endpoint: Omit<McpEndpoint, 'fetch'>,
  work: (endpoint: McpEndpoint) => Promise<T>,
): Promise<T> {
  await using guarded = guardedFetch(guard, owner, { connectTimeoutMs, idleTimeoutMs });
  return await work({ ...endpoint, fetch: guarded.fetch });
}

/** `signal` is the time limit of the work. */
export function mcpFailureOf(error: unknown, signal: AbortSignal): McpFailure {
  // The client library wraps what its fetch has thrown.
  for (let cause = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth++) {
    if (cause instanceof DomainError) return { code: cause.code, text: cause.message };
    const { statusCode } = cause as { statusCode?: unknown };
    if (statusCode === 401 || statusCode === 403) {
      return { code: 'MCP_REFUSED', text: `The server refuses the headers that it is sent (${statusCode}).` };
    }
  }
  if (signal.aborted) return { code: 'MCP_TIMEOUT', text: 'The server did not answer in time.' };
  return { code: 'MCP_UNREACHABLE', text: 'The server cannot be reached, or does not answer as an MCP server does.' };
}
