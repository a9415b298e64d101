import { cleanWords } from '../../integrations/git/rules/describeFailure.ts';
import { gitError } from '../../integrations/git/rules/failures.ts';
import { draftRef } from '../../integrations/git/rules/keptRefs.ts';
import { isObjectId } from '../../integrations/git/rules/names.ts';
import type { TreeWork } from '../../integrations/git/treeTypes.ts';
import type { MirrorState } from '../../integrations/git/types.ts';
import { type ChangeInput, recordTree } from '../../models/git/changes.ts';
import type { DraftInput } from '../../models/git/drafting.ts';
import { type GitOrder, keepResult } from '../../models/git/orders.ts';
import type { Repository } from '../../models/git/repository.ts';
import { draftFor } from './draftActivities.ts';
import { createOrdered, type GitDeps, notOrdered, type OrderedWork, type RepositoryWork } from './ordered.ts';
import { isFilled, placeTree, reach, stateOf } from './places.ts';
import { remoteOf } from './remotes.ts';

/** The activities for working trees, and for exchanges between trees, mirrors and remotes. */
export function createTreeActivities(deps: GitDeps) {
  const { database, gitMirrors, gitTrees } = deps;
  const forOrdered = createOrdered(deps);
  const step = (act: (work: OrderedWork & { tree: TreeWork }) => Promise<void>) => (work: RepositoryWork) =>
    forOrdered(work, (ordered) => act({ ...ordered, tree: treeOf(ordered.repository, ordered.order) }));

  return {
    /** Makes the working tree if there is none. If its computer was deleted, the tree goes to another one. */
    fillTree: step(async ({ repository: known, order, hooks: { signal } }) => {
      const repository = await placeTree(deps, known, order, signal);
      const tree = treeOf(repository, order);
      await reach(deps, tree, order);
      if (await gitTrees.isFilled(tree, signal)) return;
      const { bundle, ...state } = await gitMirrors.bundleFor(repository, [], signal);
      await using made = bundle;
      // Recorded before the tree exists, so that a half-made tree is removed with the repository.
      await recordTree(database, repository.itemId, state.version);
      await gitTrees.fill(tree, made, state, { url: repository.url }, signal);
    }),

    /** Fetches the files that a partial clone lacks for the commit that is to be checked out. */
    bringFiles: step(async ({ repository, order, tree, hooks }) => {
      const state = await stateOf(deps, repository);
      const commit = aimOf(order, state);
      if (commit === undefined) return;
      const isOfDraft = order.kind === 'createDraft';
      const lacking = isOfDraft ? undefined : await gitTrees.lacking(tree, commit, hooks.signal);
      if (lacking?.length === 0) return;
      await using remote = remoteOf(deps, repository);
      // A draft is filled from the mirror later, so nothing goes to a tree now.
      const wanted = isOfDraft ? [] : (lacking ?? 'all');
      await using made = await gitMirrors.fetchFiles(repository, remote, commit, wanted, hooks);
      if (made !== null) await gitTrees.update({ ...tree, workId: `${order.id}-files` }, made, state, hooks.signal);
    }),

    /** Fetches the files that a partial clone's mirror lacks to fill the working tree. */
    restoreFiles: step(async ({ repository, tree, hooks }) => {
      if (await isFilled(gitTrees, tree, hooks.signal)) return;
      const { head, refs } = (await stateOf(deps, repository)).manifest;
      const commit = refs[head] ?? head;
      if (commit.startsWith('refs/')) return;
      await using remote = remoteOf(deps, repository);
      await using _ = await gitMirrors.fetchFiles(repository, remote, commit, [], hooks);
    }),

    /** Makes the order's change in the working tree. */
    changeTree: step(async ({ repository, order, tree, hooks: { signal } }) => {
      if (order.kind === 'mergeDraft') await takeInDraft(repository, order, tree, signal);
      else await keepResult(database, order.id, await change(repository, order, tree, signal));
    }),

    /** Brings commits and moved refs from the working tree to the mirror. */
    saveTree: step(async ({ repository, tree, hooks: { signal } }) => {
      const state = await stateOf(deps, repository);
      const { bundle, refs, head } = await gitTrees.bundleOut(tree, state, signal);
      try {
        if (bundle === undefined && refs.length === 0 && head === state.manifest.head) return;
        const saved = await gitMirrors.receive(repository, { bundle, refs, head }, signal);
        await recordTree(database, repository.itemId, saved.version);
      } finally {
        // If the computer is unreachable, the next save overwrites the leftovers.
        if (bundle !== undefined) await gitTrees.settle(tree).catch(() => undefined);
      }
    }),

    /** Fetches from the remote to the mirror. */
    fetchMirror: step(async ({ repository, hooks }) => {
      await using remote = remoteOf(deps, repository);
      await gitMirrors.fetch(repository, remote, hooks);
    }),

    /** Brings the remote's refs from the mirror to the working tree. */
    updateTree: step(async ({ repository, order, tree, hooks: { signal } }) => {
      const tips = await gitTrees.tips(tree, signal);
      const kept = order.kind === 'mergeDraft' ? [mergeOf(order)] : [];
      const { bundle, ...state } = await gitMirrors.bundleFor(repository, tips, signal, kept);
      await using made = bundle;
      const pushed = order.kind === 'pushRepository' ? branchToPush(order, state) : undefined;
      await gitTrees.update(tree, made, state, signal, pushed);
    }),

    /** Pushes a branch from the mirror to the remote. */
    pushMirror: step(async ({ repository, order, hooks }) => {
      const { force = false } = order.input as ChangeInput;
      const name = `refs/heads/${branchToPush(order, await stateOf(deps, repository))}`;
      await using remote = remoteOf(deps, repository, 'write');
      const { output } = await gitMirrors.push(repository, remote, [{ from: name, to: name, force }], hooks);
      await keepResult(database, order.id, { output });
    }),
  };

  /** Moves the base branch to the draft's merge commit: in the working tree if there is one, so that files follow. */
  async function takeInDraft(
    repository: Repository,
    order: GitOrder,
    tree: TreeWork,
    signal: AbortSignal,
  ): Promise<void> {
    const { baseBranch } = await draftFor(deps, order);
    const { refs } = (await stateOf(deps, repository)).manifest;
    const commit = refs[mergeOf(order)];
    if (commit === undefined || baseBranch === null) throw gitError('GIT_FAILED', 'The draft has not been merged.');
    if (repository.treeVersion !== null) {
      await gitTrees.advance(tree, { branch: baseBranch, commit }, signal);
      return;
    }
    const name = `refs/heads/${baseBranch}`;
    await gitMirrors.receive(repository, { refs: [{ name, from: refs[name] ?? null, to: commit }] }, signal);
  }

  async function change(
    repository: Repository,
    order: GitOrder,
    tree: TreeWork,
    signal: AbortSignal,
  ): Promise<Record<string, unknown>> {
    const { name = '', from, checkout = false, branch = '', message = '', paths, author } = order.input as ChangeInput;
    const at = order.createdAt;
    switch (order.kind) {
      case 'createBranch':
        return gitTrees.branch(tree, { name, from, checkout }, signal);
      case 'checkoutBranch':
        return gitTrees.checkout(tree, { branch }, signal);
      case 'commitChanges': {
        const { id: commit, output } = await gitTrees.commit(tree, { message, author, at, paths }, signal);
        return { commit, output };
      }
      case 'pullRepository': {
        const name = branch || (await gitTrees.status(tree, signal)).branch;
        const ref = `refs/remotes/origin/${name ?? 'HEAD'}`;
        if (name !== null) requireRemoteBranch(await stateOf(deps, repository), name);
        return gitTrees.merge(tree, { ref, author, at, fastForwardOnly: true }, signal);
      }
      default:
        throw notOrdered();
    }
  }
}

function treeOf({ spaceId, itemId, computerId, treePath: path }: Repository, { id: workId }: GitOrder): TreeWork {
  return { spaceId, itemId, computerId, path, workId };
}

/** The commit that the order checks out; undefined if that is the current one, or unknown. */
function aimOf({ kind, input }: GitOrder, { manifest: { head, refs } }: MirrorState): string | undefined {
  const { from, branch } = input as ChangeInput;
  if (kind === 'createDraft') return beginningOf(input as unknown as DraftInput, refs);
  if (kind === 'pullRepository') return refs[`refs/remotes/origin/${branch ?? head.slice('refs/heads/'.length)}`];
  const name = kind === 'createBranch' ? from : branch;
  if (name === undefined) return undefined;
  const prefixes = ['refs/heads/', 'refs/remotes/origin/', 'refs/remotes/', 'refs/tags/', ''];
  const ref = prefixes.map((prefix) => prefix + name).find((full) => refs[full] !== undefined);
  if (ref !== undefined) return refs[ref];
  return isObjectId(name) ? name : undefined;
}

function branchToPush({ input }: GitOrder, { manifest: { head } }: MirrorState): string {
  const { branch } = input as ChangeInput;
  if (branch !== undefined) return branch;
  if (head.startsWith('refs/heads/')) return head.slice('refs/heads/'.length);
  throw gitError('GIT_REF_UNKNOWN', 'No branch is checked out. Set `branch` to the branch to push.');
}

/** Throws 409 `GIT_NO_REMOTE_BRANCH` if the last fetch did not bring the branch. */
function requireRemoteBranch({ manifest: { refs } }: MirrorState, name: string): void {
  if (refs[`refs/remotes/origin/${name}`] !== undefined) return;
  const shown = cleanWords(name, 100);
  const detail = `The remote has no branch ${shown}. Push it first, or set \`branch\` to a branch of the remote.`;
  throw gitError('GIT_NO_REMOTE_BRANCH', detail);
}

/** The commit at which a new draft begins: that of its only kept branch. */
function beginningOf({ draftId }: DraftInput, refs: Record<string, string>): string | undefined {
  const heads = draftRef(draftId, 'heads/');
  return Object.entries(refs).find(([name]) => name.startsWith(heads))?.[1];
}

/** The ref that keeps the commit of a merge. */
function mergeOf({ input }: GitOrder): string {
  return draftRef((input as unknown as DraftInput).draftId, 'merge');
}
