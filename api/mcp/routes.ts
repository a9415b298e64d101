import { DomainError } from '../../base/errors.ts';
import { firstOf } from '../../base/text.ts';
import { refreshMcpTools } from '../../integrations/mcp/refreshMcpTools.ts';
import type { McpServer } from '../../models/mcp/mcpServers.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { callerOf, requireScope } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';

/** The MCP servers whose tools a space's agents have. */
export function mcpServerRoutes(deps: RouteDeps) {
  const { mcpServers } = deps;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/mcp-servers', async (req, res) => {
    const servers = await mcpServers.list(pathOf<'listMcpServers'>(req).spaceId);
    answer<'listMcpServers'>(res, 200, { data: servers.map(present), nextCursor: null });
  });

  router.post('/api/spaces/:spaceId/mcp-servers', async (req, res) => {
    const { spaceId } = pathOf<'addMcpServer'>(req);
    const { name, url, headers = {}, approval = 'destructive', takesSecrets = false } = bodyOf<'addMcpServer'>(req);
    requireUrl(url);
    const caller = callerOf(req);
    // Its calls are made in the turns of others, with what those may do.
    if (approval === 'never') requireScope(caller, 'approvals', ', which a server without approvals needs');
    if (takesSecrets) requireScope(caller, 'secrets:read', ', which a server that takes secrets needs');
    const { userId } = caller;
    await makeOnce<'addMcpServer'>(deps, req, res, 'mcpServer', async (id) => {
      await mcpServers.add({ id, spaceId, name, url, headers, approval, takesSecrets }, { ...actorOf(req), userId });
      // The answer says at once whether the server responds, and whether it accepts the headers.
      await refreshMcpTools(deps, await mcpServers.get(spaceId, id));
      return present(await mcpServers.get(spaceId, id));
    });
  });

  router.post('/api/spaces/:spaceId/mcp-servers/:mcpServerId/check', async (req, res) => {
    const { spaceId, mcpServerId } = pathOf<'checkMcpServer'>(req);
    await refreshMcpTools(deps, await mcpServers.get(spaceId, mcpServerId));
    answer<'checkMcpServer'>(res, 200, present(await mcpServers.get(spaceId, mcpServerId)));
  });

  router.delete('/api/spaces/:spaceId/mcp-servers/:mcpServerId', async (req, res) => {
    const { spaceId, mcpServerId } = pathOf<'removeMcpServer'>(req);
    await mcpServers.remove(spaceId, mcpServerId, actorOf(req));
    res.status(204).end();
  });

  return router;
}

/** Tokens belong in headers, which are stored as secrets; a URL is shown to every member. */
function requireUrl(text: string): void {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '') return;
  const detail = 'must begin with http:// or https://, without a user name or a password';
  throw new DomainError('unprocessable', 'MCP_URL_INVALID', 'This cannot be the URL of an MCP server.', {
    errors: [{ pointer: '/url', detail }],
  });
}

function present(server: McpServer): AnswerOf<'checkMcpServer'> {
  const { id, name, url, headerNames, approval, takesSecrets, tools, listedAt, failure, createdBy, createdAt } = server;
  return {
    id,
    name,
    url,
    headerNames,
    approval,
    takesSecrets,
    status: statusOf(server),
    failure,
    tools: (tools ?? []).map((tool) => ({
      name: tool.name,
      description: firstOf(tool.description ?? '', 2_000),
      isReadOnly: tool.isReadOnly,
      mayDestroy: tool.mayDestroy ?? !tool.isReadOnly,
    })),
    listedAt: listedAt === null ? null : time(listedAt),
    createdBy,
    createdAt: time(createdAt),
  };
}

function statusOf({ failedAt, failureCode, tools }: McpServer): AnswerOf<'checkMcpServer'>['status'] {
  if (failedAt !== null) return failureCode === 'MCP_REFUSED' ? 'refused' : 'unreachable';
  return tools === null ? 'new' : 'ok';
}
