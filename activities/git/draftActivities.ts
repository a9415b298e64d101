import { DomainError } from '../../base/errors.ts';
import { cleanWords } from '../../integrations/git/rules/describeFailure.ts';
import { gitError, mayPass } from '../../integrations/git/rules/failures.ts';
import { asDraft, draftRef, movesOfDraft, refsOfDraft, uncommittedRef } from '../../integrations/git/rules/keptRefs.ts';
import type { TreeWork, Uncommitted } from '../../integrations/git/treeTypes.ts';
import type { MirrorState } from '../../integrations/git/types.ts';
import type { DraftInput } from '../../models/git/drafting.ts';
import { type Draft, findDraft, forgetDraft, recordDraft } from '../../models/git/drafts.ts';
import { type GitOrder, keepResult } from '../../models/git/orders.ts';
import { isComputerGone, moveDraft } from '../../models/git/placing.ts';
import { createOrdered, type GitDeps, type OrderedWork, type RepositoryWork } from './ordered.ts';
import { askerOf, isFilled, reach, removeTree, stateOf } from './places.ts';
import { remoteOf } from './remotes.ts';

type DraftWork = OrderedWork & { draft: Draft; tree: TreeWork };

/** The activities for drafts: in their working trees, and in the mirror that they share with their repository. */
export function createDraftActivities(deps: GitDeps) {
  const { database, gitMirrors, gitTrees, liveComputers } = deps;
  const forOrdered = createOrdered(deps);
  const step = (act: (work: DraftWork) => Promise<void>) => (work: RepositoryWork) =>
    forOrdered(work, async (ordered) => {
      const draft = await draftFor(deps, ordered.order);
      await act({ ...ordered, draft, tree: treeOfDraft(draft, ordered.order) });
    });

  return {
    /** Finds the branch and commit from which the draft starts, and records them. */
    openDraft: step(async ({ repository, order, draft, hooks: { signal } }) => {
      await keepResult(database, order.id, { id: draft.id });
      const { manifest } = await stateOf(deps, repository);
      const own = draftRef(draft.id, `heads/${draft.branch}`);
      if (manifest.refs[own] !== undefined) return;
      const { head, refs } = manifest;
      const known = refs[`refs/heads/${draft.branch}`] ?? refs[`refs/remotes/origin/${draft.branch}`];
      const current = head.startsWith('refs/heads/') ? head.slice('refs/heads/'.length) : null;
      const baseBranch = known === undefined ? current : draft.branch;
      const baseCommit = known ?? refs[head];
      if (baseCommit === undefined || baseBranch === null) {
        throw gitError(
          'GIT_REF_UNKNOWN',
          'The repository has no checked-out branch with a commit. Commit something or check out a branch first.',
        );
      }
      await recordDraft(database, draft.id, { baseBranch, baseCommit });
      await gitMirrors.receive(repository, { refs: [{ name: own, from: null, to: baseCommit }] }, signal);
    }),

    /** Fetches the files that a partial clone's mirror lacks to fill the draft's working tree. */
    restoreDraft: step(async ({ repository, draft, tree, hooks }) => {
      if (await isFilled(gitTrees, tree, hooks.signal)) return;
      const { head, refs } = asDraft(await stateOf(deps, repository), draft).manifest;
      await using remote = remoteOf(deps, repository);
      for (const commit of [refs[head] ?? head, refs[uncommittedRef]]) {
        if (commit === undefined || commit.startsWith('refs/')) continue;
        await using _ = await gitMirrors.fetchFiles(repository, remote, commit, [], hooks);
      }
    }),

    /** Makes the draft's working tree from its saved state, if there is no tree. */
    fillDraft: step(async ({ repository, order, draft: known, hooks: { signal } }) => {
      const draft = (await isComputerGone(database, known)) ? await moveDraft(database, known) : known;
      const tree = treeOfDraft(draft, order);
      if (order.kind === 'createDraft') await liveComputers.awake(tree, await askerOf(deps, order));
      // No user waits for an automatic save, so it wakes no computer.
      else if (order.kind !== 'saveDraft') await reach(deps, tree, order);
      if (await gitTrees.isFilled(tree, signal)) return;
      const own = refsOfDraft((await stateOf(deps, repository)).manifest, draft.id);
      const { bundle, ...state } = await gitMirrors.bundleFor(repository, [], signal, own);
      await using made = bundle;
      // Recorded before the tree exists, so that a half-made tree is removed with the draft.
      await recordDraft(database, draft.id, { isFilled: true });
      await gitTrees.fill(tree, made, asDraft(state, draft), { url: repository.url }, signal);
    }),

    /** Saves the draft's committed and uncommitted work to the mirror. */
    saveDraft: step(async ({ repository, order, draft, tree, hooks: { signal } }) => {
      if (order.kind === 'mergeDraft') {
        const committed = await commitAll(order, draft, tree, signal);
        if (committed !== undefined) await keepResult(database, order.id, { committed });
      }
      if (order.kind === 'commitDraft') {
        const { id: commit, output } = await commitIn(order, tree, signal);
        await keepResult(database, order.id, { commit, output });
      }
      // Taken first: this save may miss later changes.
      const savedAt = new Date();
      const state = await stateOf(deps, repository);
      const saved = asDraft(state, draft);
      const { kept, failure } = await keep(tree, saved, signal);
      const { bundle, refs, head } = await gitTrees.bundleOut(tree, saved, signal, kept);
      const { moves, left } = movesOfDraft({ refs, head }, state.manifest, draft.id);
      if (moves.length > 0) await gitMirrors.receive(repository, { bundle, refs: moves }, signal);
      else bundle?.destroy();
      const error = failure ?? incomplete(kept?.left, left);
      await recordDraft(database, draft.id, {
        head,
        ...(failure === undefined && { savedAt }),
        errorCode: error?.code ?? null,
        errorDetail: error?.message.slice(0, 500) ?? null,
      });
      if (bundle !== undefined) await gitTrees.settle(tree);
      // A requested commit is made and saved even if uncommitted work is not.
      if (failure !== undefined && order.kind !== 'commitDraft') throw failure;
      if (order.kind === 'mergeDraft' && (kept?.commit ?? kept?.left) !== undefined) {
        throw gitError(
          'GIT_DRAFT_UNCOMMITTED',
          'The draft has uncommitted changes. Commit them, or give a `message` to commit them now.',
        );
      }
    }),

    /** Brings the repository's branches to the draft, as the branches of `origin`. */
    updateDraft: step(async ({ repository, draft, tree, hooks: { signal } }) => {
      const tips = await gitTrees.tips(tree, signal);
      const { bundle, ...state } = await gitMirrors.bundleFor(repository, tips, signal);
      await using made = bundle;
      await gitTrees.update(tree, made, asDraft(state, draft), signal);
    }),

    /** Merges the draft and its base branch into a commit of the mirror. The branch moves later. */
    joinDraft: step(async ({ repository, order, draft, hooks: { signal } }) => {
      const { author, message } = order.input as unknown as DraftInput;
      const branch = draft.baseBranch ?? '';
      const merge = {
        into: branch,
        from: draftRef(draft.id, `heads/${draft.branch}`),
        to: draftRef(draft.id, 'merge'),
        author,
        at: order.createdAt,
        message: message ?? `Merge draft ${draft.branch}`,
      };
      const result = await gitMirrors.merge(repository, merge, signal);
      await keepResult(database, order.id, { ...order.result, ...result, branch });
    }),

    /** Removes a discarded draft: its tree, its refs and its row. */
    async dropDraft(work: RepositoryWork): Promise<void> {
      await forOrdered(work, async ({ repository, order, hooks: { signal } }) => {
        const draft = await findDraft(database, draftIdOf(order));
        if (draft === undefined || draft.status !== 'discarding') return;
        await removeDraftTree(deps, draft);
        const { manifest } = await stateOf(deps, repository);
        const refs = refsOfDraft(manifest, draft.id).map((name) => ({
          name,
          from: manifest.refs[name] ?? null,
          to: null,
        }));
        if (refs.length > 0) await gitMirrors.receive(repository, { refs }, signal);
        await forgetDraft(database, draft.id);
      });
    },
  };

  /** Keeps uncommitted work. If git refuses, the failure is returned and the commits are saved anyway. */
  async function keep(
    tree: TreeWork,
    { manifest: { refs } }: MirrorState,
    signal: AbortSignal,
  ): Promise<{ kept?: Uncommitted; failure?: DomainError }> {
    try {
      return { kept: await gitTrees.keepUncommitted(tree, refs[uncommittedRef], signal) };
    } catch (error) {
      if (signal.aborted || !(error instanceof DomainError) || mayPass(error)) throw error;
      return { failure: error };
    }
  }

  function commitIn({ input, createdAt: at }: GitOrder, tree: TreeWork, signal: AbortSignal) {
    const { author, message = '', paths } = input as unknown as DraftInput;
    return gitTrees.commit(tree, { message, author, at, paths }, signal);
  }

  /** Commits uncommitted work if the order has a message for that. Returns the commit's id. */
  async function commitAll(
    order: GitOrder,
    draft: Draft,
    tree: TreeWork,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    if ((order.input as unknown as DraftInput).message === undefined) return undefined;
    const { branch } = await gitTrees.status(tree, signal);
    if (branch !== draft.branch) {
      throw gitError(
        'GIT_DRAFT_UNCOMMITTED',
        'The draft has another branch checked out than its own. Check out its own branch first.',
      );
    }
    try {
      return (await commitIn(order, tree, signal)).id;
    } catch (error) {
      if (!(error instanceof DomainError) || error.code !== 'GIT_NOTHING_TO_COMMIT') throw error;
      return undefined;
    }
  }
}

/** The error of a draft that was saved except for these files and refs. */
function incomplete(files: string | undefined, refs: readonly string[]): DomainError | undefined {
  const names = refs.slice(0, 3).map((name) => cleanWords(name.slice('refs/'.length), 100));
  const more = refs.length > names.length ? ', …' : '';
  const tooLong = refs.length === 0 ? undefined : `the names of ${names.join(', ')}${more} are too long`;
  const left = [tooLong, files].filter((words) => words !== undefined).join('; ');
  return left === '' ? undefined : gitError('GIT_DRAFT_INCOMPLETE', `The draft was saved except for this: ${left}`);
}

/** Removes the working tree of a draft, if it ever had one. */
export async function removeDraftTree(deps: GitDeps, draft: Draft): Promise<void> {
  const { id: itemId, statusAt: removedAt, isFilled, spaceId, computerId, treePath } = draft;
  await removeTree(deps, { itemId, spaceId, computerId, treePath, treeVersion: isFilled ? 0 : null, removedAt });
}

/** A draft's tree has the draft's id as its item: the repository's own tree may be on the same computer. */
function treeOfDraft({ id, spaceId, computerId, treePath: path }: Draft, order: GitOrder): TreeWork {
  return { spaceId, itemId: id, computerId, path, workId: `${order.id}-draft` };
}

const draftIdOf = ({ input }: GitOrder) => (input as unknown as DraftInput).draftId;

/** The draft of an order. Throws 409 `GIT_DRAFT_GONE`. */
export async function draftFor({ database }: Pick<GitDeps, 'database'>, order: GitOrder): Promise<Draft> {
  const draft = await findDraft(database, draftIdOf(order));
  if (draft !== undefined && draft.status !== 'discarding') return draft;
  throw gitError('GIT_DRAFT_GONE', 'The draft was discarded in the meantime.');
}
