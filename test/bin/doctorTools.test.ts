import { checkEgress, checkMcpServers } from '../../bin/support/checkTools.ts';
import { loadConfig } from '../../config/index.ts';
import { buildApi, type TestApi } from '../builders/api.ts';
import { buildSpace, buildUser } from '../builders/identity.ts';

// The checks of `atrium doctor` for egress and MCP servers.

let api: TestApi;
let spaceId: string;
let actor: { userId: string; credentialId: null; address: null };

beforeAll(async () => {
  api = await buildApi();
  const { user } = await buildUser(api.identity);
  ({ id: spaceId } = (await buildSpace(api.identity, user.id)).space);
  actor = { userId: user.id, credentialId: null, address: null };
});
afterAll(() => api.close());

const configWith = (allowInternal: string) =>
  loadConfig({ ...api.environment.environment, ATRIUM_EGRESS_ALLOW_INTERNAL: allowInternal });

test("the check of egress lists the operator's exceptions and counts the spaces with lists", async () => {
  expect(await checkEgress(configWith(''), true)).toEqual({
    state: 'ok',
    detail: 'nothing internal; 0 spaces with an allow list, 0 with a deny list',
  });
  await api.deps.egressRules.put(spaceId, { allow: ['example.com'], deny: [] }, actor);
  expect((await checkEgress(configWith('10.2.0.0/16,intern.example:8443'), true)).detail).toBe(
    'internal: 10.2.0.0/16, intern.example:8443; 1 space with an allow list, 0 with a deny list',
  );
});

test('the check of egress says that a running Atrium may have started with other settings', async () => {
  const { detail } = await checkEgress(configWith(''), false);
  expect(detail).toMatch(/^nothing internal, as set here \(what the running Atrium was started with is not seen\); /);
});

test('the check of egress names an invalid exception', async () => {
  expect(await checkEgress(configWith('10.2.0.0/99,intern.example'), true)).toEqual({
    state: 'wrong',
    detail: 'ATRIUM_EGRESS_ALLOW_INTERNAL: 10.2.0.0/99 is not a host or network',
  });
});

test('the check of MCP servers names those that failed, with the reason', async () => {
  const { mcpServers, config } = api.deps;
  expect(await checkMcpServers(config)).toEqual({ state: 'off', detail: 'no space has one' });
  const server = {
    spaceId,
    url: 'https://mcp.example.com/mcp',
    approval: 'never' as const,
    takesSecrets: false,
    headers: {},
  };
  await mcpServers.add({ ...server, id: 'mcp_1', name: 'tracker' }, actor);
  await mcpServers.add({ ...server, id: 'mcp_2', name: 'wiki' }, actor);
  expect(await checkMcpServers(config)).toEqual({ state: 'ok', detail: '2 in 1 space' });
  await mcpServers.keepFailure('mcp_2', { code: 'MCP_REFUSED', text: 'it wants other headers' });
  expect(await checkMcpServers(config)).toEqual({
    state: 'off',
    detail: `2 in 1 space; failed when last asked: wiki (${spaceId}, MCP_REFUSED)`,
  });
});
