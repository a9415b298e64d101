import { DomainError } from '../../../base/errors.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { findUsable } from '../../../models/environments/bases.ts';
import { buildAgain, type Environment, listEnvironments } from '../../../models/environments/environment.ts';
import { findVersion, latestVersions } from '../../../models/environments/version.ts';
import { actorOfTurn, idOfCall } from '../calls.ts';
import { objectSchema, type ServerTool, serverTool } from '../tool.ts';
import type { ComputerToolDeps } from './place.ts';

const timeoutMs = 60_000;
const listed = 100;

const environmentProperty = {
  type: 'string',
  minLength: 1,
  maxLength: 80,
  description: 'An environment, as environment_list returns it: the name of one of the space, or the id.',
};

/** How a space names an environment. One of another space could be renamed to what is meant to be something else. */
function namedIn(spaceId: string, { id, name, ...one }: Pick<Environment, 'id' | 'name' | 'spaceId'>): string {
  return one.spaceId === spaceId ? name : id;
}

/** Tools over environments, which are systems for computers, and a tool that makes computers with them. */
export function environmentTools(deps: ComputerToolDeps): ServerTool[] {
  const { computers, database, workflows } = deps;

  async function idOf({ spaceId }: Turn, environment: string): Promise<string> {
    const found = await findUsable(database.pool, spaceId, environment);
    if (found !== undefined) return found.id;
    const { data } = await listEnvironments(database, spaceId, { limit: listed });
    const names = data.map((one) => namedIn(spaceId, one)).join(', ') || 'none';
    throw new DomainError('notFound', 'ENVIRONMENT_UNKNOWN', `There is no such environment. There are: ${names}.`);
  }

  return [
    serverTool<Record<string, never>>({
      name: 'environment_list',
      description:
        'Lists the environments that computers of the space can have: systems with programs installed, of the space or shared with it. With one, a computer has root and may install more.',
      access: 'read',
      role: 'viewer',
      scope: 'computers:read',
      timeoutMs,
      afterCrash: 'again',
      inputSchema: objectSchema({}),
      async run(_input, { turn }) {
        const { data, nextCursor } = await listEnvironments(database, turn.spaceId, { limit: listed });
        const ids = data.map(({ id }) => id);
        const latest = await latestVersions(database, ids);
        const environments = data.map((one) => {
          const { id, name, base, isShared, readyVersion } = one;
          const { status, errorCode, waitsFor } = latest.get(id) ?? {};
          const why = errorCode ?? waitsFor;
          return {
            environment: namedIn(turn.spaceId, one),
            name,
            id,
            base,
            isShared,
            readyVersion,
            newestBuild: status,
            ...(why && { why }),
          };
        });
        return { environments, ...(nextCursor !== null && { truncated: true }) };
      },
    }),

    serverTool<{ environment: string; withoutCache: boolean }>({
      name: 'environment_build',
      description:
        'Begins to build a new version of an environment of the space as it is defined, for example to get newer packages. Look at environment_list for its end. The user must approve.',
      access: 'act',
      role: 'editor',
      scope: 'computers:write',
      isDangerous: true,
      timeoutMs,
      // The version has the call's id.
      afterCrash: 'again',
      inputSchema: objectSchema(
        {
          environment: environmentProperty,
          withoutCache: { type: 'boolean', default: false, description: 'Whether all steps run again.' },
        },
        ['environment'],
      ),
      targetOf: async ({ environment }, turn) => ({ identity: await idOf(turn, environment) }),
      async run({ withoutCache }, { turn, toolCallId, target }) {
        const { spaceId } = turn;
        const versionId = idOfCall('environmentVersion', toolCallId);
        const of = { spaceId, environmentId: target, versionId };
        await buildAgain(deps, { ...of, withoutCache, actor: actorOfTurn(turn) });
        const version = await findVersion(database.pool, versionId);
        if (version === undefined) throw new Error(`The version ${versionId} was not made.`);
        const { operationId, number, status, createdBy: userId } = version;
        const operation = { id: operationId, kind: 'buildEnvironment', spaceId, userId, subjectId: versionId };
        if (status === 'building') void workflows.startOperation(operation);
        return { version: number, status };
      },
    }),

    serverTool<{ name?: string; environment?: string }>({
      name: 'computer_create',
      description:
        'Makes a computer, with the system of an environment or with that of its host. It is stopped until it is used by its computerId.',
      access: 'act',
      role: 'editor',
      scope: 'computers:write',
      timeoutMs,
      // The computer has the call's id.
      afterCrash: 'again',
      inputSchema: objectSchema({
        name: { type: 'string', minLength: 1, maxLength: 100, pattern: '\\S' },
        environment: environmentProperty,
      }),
      async run({ name, environment }, { turn, toolCallId }) {
        const id = idOfCall('computer', toolCallId);
        const environmentId = environment === undefined ? undefined : await idOf(turn, environment);
        const fields = { ...(name !== undefined && { name }), ...(environmentId !== undefined && { environmentId }) };
        const made = await computers.create(turn.spaceId, id, fields, actorOfTurn(turn));
        return { computerId: made.id, name: made.name };
      },
    }),
  ];
}
