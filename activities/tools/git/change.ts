import { checkBranchName } from '../../../integrations/git/rules/names.ts';
import { idOfCall } from '../calls.ts';
import { objectSchema, type ServerTool, serverTool } from '../tool.ts';
import { ask } from './ask.ts';
import {
  draftProperty,
  type GitToolDeps,
  type RepositoryInput,
  repositoryAt,
  repositoryProperty,
  revisionProperty,
  type TreeInput,
} from './place.ts';

const common = {
  access: 'act',
  role: 'editor',
  scope: 'git:write',
  timeoutMs: 15 * 60_000,
  afterCrash: 'again',
} as const;

/** Tools that change repositories through their workflows. A repeated call gives the same order. */
export function gitChangeTools(deps: GitToolDeps): ServerTool[] {
  return [
    serverTool<TreeInput & { message: string; paths?: string[] }>({
      ...common,
      name: 'git_commit',
      description:
        'Commits all changed, added and deleted files in the working tree of a git repository, or only `paths`, in the name of the user.',
      inputSchema: objectSchema(
        {
          repository: repositoryProperty,
          draft: draftProperty,
          message: { type: 'string', minLength: 1, maxLength: 20_000, pattern: '\\S' },
          paths: {
            type: 'array',
            minItems: 1,
            maxItems: 100,
            items: { type: 'string', minLength: 1, maxLength: 4_096 },
            description: 'Paths relative to the repository’s folder.',
          },
        },
        ['repository', 'message'],
      ),
      async run({ message, paths, draft: draftId, ...input }, { turn, toolCallId, signal }) {
        const { itemId } = await repositoryAt(deps, turn, input);
        const { name = '', email = '' } = (await deps.identity.users.byId(turn.userId)) ?? {};
        const change = { message, author: { name, email }, ...(paths !== undefined && { paths }) };
        const place = { id: idOfCall('operation', toolCallId), itemId };
        const order =
          draftId === undefined
            ? ({ ...place, kind: 'commitChanges', input: change } as const)
            : ({ ...place, kind: 'commitDraft', input: { ...change, draftId } } as const);
        const { commit, output } = await ask(deps, turn, order, signal);
        return { commit, output };
      },
    }),

    serverTool<RepositoryInput & { name: string; checkout: boolean; from?: string }>({
      ...common,
      name: 'git_branch',
      description:
        'Creates a branch in a git repository, and checks it out unless `checkout` is false. Uncommitted changes are kept.',
      inputSchema: objectSchema(
        {
          repository: repositoryProperty,
          name: { type: 'string', minLength: 1, maxLength: 255 },
          checkout: { type: 'boolean', default: true },
          from: {
            ...revisionProperty,
            description: 'The commit or branch to start from. Default: the current commit.',
          },
        },
        ['repository', 'name'],
      ),
      async run({ name, checkout, from, ...input }, { turn, toolCallId, signal }) {
        checkBranchName(name);
        const { itemId } = await repositoryAt(deps, turn, input);
        const change = { name, checkout, ...(from !== undefined && { from }) };
        const order = { id: idOfCall('operation', toolCallId), itemId, kind: 'createBranch', input: change } as const;
        const { output } = await ask(deps, turn, order, signal);
        return { branch: name, output };
      },
    }),
  ];
}
