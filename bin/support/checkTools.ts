import { counted } from '../../base/text.ts';
import type { Config } from '../../config/index.ts';
import { parseHostPattern } from '../../integrations/egress/hostPattern.ts';
import { openDatabase } from '../../models/database/database.ts';
import { countEgressLists } from '../../models/egress/egressRules.ts';
import { readMcpOverview } from '../../models/mcp/mcpServers.ts';
import { type CheckResult, off, ok, wrong } from './check.ts';

/**
 * Says what agents may reach beyond the public internet, and how many spaces narrow it. An invalid exception would have
 * no effect, without notice. `isSeen`: whether the settings here are those in force.
 */
export async function checkEgress(config: Config, isSeen: boolean): Promise<CheckResult> {
  const { allowInternal } = config.egress;
  const unread = allowInternal.filter((text) => parseHostPattern(text) === undefined);
  if (unread.length > 0) return wrong(`ATRIUM_EGRESS_ALLOW_INTERNAL: ${unread.join(', ')} is not a host or network`);
  await using database = openDatabase(config);
  const { allowing, denying } = await countEgressLists(database);
  const set = allowInternal.length === 0 ? 'nothing internal' : `internal: ${allowInternal.join(', ')}`;
  // The running Atrium may have been started with other settings.
  const internal = isSeen ? set : `${set}, as set here (what the running Atrium was started with is not seen)`;
  return ok(`${internal}; ${counted(allowing, 'space')} with an allow list, ${denying} with a deny list`);
}

/**
 * Lists MCP servers of spaces that do not answer. They belong to the spaces, so this is not a fault. But people will
 * ask the operator about them.
 */
export async function checkMcpServers(config: Config): Promise<CheckResult> {
  await using database = openDatabase(config);
  const { servers, spaces, failed } = await readMcpOverview(database);
  if (servers === 0) return off('no space has one');
  const all = `${servers} in ${counted(spaces, 'space')}`;
  if (failed.length === 0) return ok(all);
  const names = failed.map(({ name, spaceId, code }) => `${name} (${spaceId}, ${code ?? 'unreachable'})`).join(', ');
  return off(`${all}; failed when last asked: ${names}`);
}
