import { DomainError } from '../../../base/errors.ts';
import { draftMissing, treeMissing } from '../../../integrations/git/rules/failures.ts';
import type { TreeRef } from '../../../integrations/git/treeTypes.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { listDrafts } from '../../../models/git/drafts.ts';
import type { Repository } from '../../../models/git/repository.ts';
import { may, standingOf } from '../../../models/identity/authority.ts';
import { isAtLeast } from '../../../models/identity/roles.ts';
import { objectSchema, type ServerTool, serverTool, type ToolContext } from '../tool.ts';
import { ask } from './ask.ts';
import {
  draftProperty,
  type GitToolDeps,
  repositoryAt,
  repositoryProperty,
  revisionProperty,
  type TreeInput,
  treeOf,
} from './place.ts';

const common = {
  access: 'read',
  role: 'viewer',
  scope: 'git:read',
  timeoutMs: 10 * 60_000,
  afterCrash: 'again',
} as const;
const maxChanges = 500;
const maxDiff = 200_000;
const maxDrafts = 50;

/** Tools that look at repositories. */
export function gitLookTools(deps: GitToolDeps): ServerTool[] {
  const { database, gitTrees, identity } = deps;

  /** Looks at a working tree. If there is none yet, it is made first, provided that the turn may do that. */
  async function look<T>(
    input: TreeInput,
    { turn, signal }: ToolContext,
    at: (tree: TreeRef, repository: Repository) => Promise<T>,
  ): Promise<T> {
    const repository = await repositoryAt(deps, turn, input);
    const tree = await treeOf(deps, repository, input);
    try {
      return await at(tree, repository);
    } catch (error) {
      const code = error instanceof DomainError ? error.code : undefined;
      if (code !== 'GIT_TREE_MISSING' && code !== 'COMPUTER_NOT_RUNNING') throw error;
      if (input.draft !== undefined) throw draftMissing();
      if (!(await mayChange(turn))) throw treeMissing();
      await ask(deps, turn, { itemId: repository.itemId, kind: 'fillRepository', input: {} }, signal);
      return at(tree, repository);
    }
  }

  /** Making a working tree may wake a computer, which costs credits. */
  async function mayChange(turn: Turn): Promise<boolean> {
    const { role, keyHolds } = await standingOf(identity, turn);
    const isEditor = role !== undefined && isAtLeast(role, 'editor');
    return turn.mode === 'work' && isEditor && keyHolds && may(turn, 'git:write');
  }

  async function draftsOf(itemId: string) {
    const { data } = await listDrafts(database, itemId, { limit: maxDrafts });
    return data.map(({ id, branch, computerId, treePath: folder, status }) => ({
      id,
      branch,
      computerId,
      folder,
      status,
    }));
  }

  return [
    serverTool<TreeInput>({
      ...common,
      name: 'git_status',
      description:
        'Shows the changed files in the working tree of a git repository of the drive, its branch, its place on its computer, and its drafts.',
      inputSchema: objectSchema({ repository: repositoryProperty, draft: draftProperty }, ['repository']),
      run: (input, context) =>
        look(input, context, async (tree, { itemId }) => {
          const { changes, truncated, ...status } = await gitTrees.status(tree, context.signal);
          const shown = changes.slice(0, maxChanges);
          const isCut = truncated || shown.length < changes.length;
          const place = { computerId: tree.computerId, folder: tree.path };
          const drafts = input.draft === undefined ? { drafts: await draftsOf(itemId) } : {};
          return { ...status, ...place, changes: shown, truncated: isCut, ...drafts };
        }),
    }),

    serverTool<TreeInput & { from?: string; to?: string; staged: boolean; path?: string }>({
      ...common,
      name: 'git_diff',
      description:
        'Shows differences in a git repository: the working tree against the index or against `from`; with `from` and `to`, two commits or branches; with `staged`, the index against the last commit.',
      inputSchema: objectSchema(
        {
          repository: repositoryProperty,
          draft: draftProperty,
          from: revisionProperty,
          to: revisionProperty,
          staged: { type: 'boolean', default: false },
          path: { type: 'string', minLength: 1, maxLength: 4_096, description: 'Shows only this file or folder.' },
        },
        ['repository'],
      ),
      run: ({ from, to, staged, path, ...input }, context) =>
        look(input, context, async (tree) => {
          const range = { from, to, staged, ...(path !== undefined && { paths: [path] }) };
          const { text, truncated } = await gitTrees.diff(tree, range, context.signal);
          return { diff: text.slice(0, maxDiff), truncated: truncated || text.length > maxDiff };
        }),
    }),

    serverTool<TreeInput & { from?: string; path?: string; limit: number; after?: string }>({
      ...common,
      name: 'git_log',
      description: 'Lists the commits of a git repository, newest first, from the current branch or from `from`.',
      inputSchema: objectSchema(
        {
          repository: repositoryProperty,
          draft: draftProperty,
          from: revisionProperty,
          path: {
            type: 'string',
            minLength: 1,
            maxLength: 4_096,
            description: 'Lists only commits that change this file or folder.',
          },
          limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
          after: {
            type: 'string',
            pattern: '^[0-9a-f]{40}\\.\\d{1,9}$',
            description: 'The `next` that the previous call returned.',
          },
        },
        ['repository'],
      ),
      run: ({ from, path, limit, after, ...input }, context) =>
        look(input, context, (tree) => gitTrees.log(tree, { from, after, limit, path }, context.signal)),
    }),
  ];
}
