import { DomainError, notFound } from '../../base/errors.ts';
import { Places } from '../../base/places.ts';
import type { Config } from '../../config/index.ts';
import type { EgressOwner } from '../egress/guard.ts';
import type { RunningEgressProxy } from '../egress/startEgressProxy.ts';
import { fetchedRefs, refspecsOf } from './clone/bring.ts';
import { bringFiles, cloneInto, resultOf } from './clone/clone.ts';
import { fetchCommand } from './clone/missing.ts';
import { makeBundle } from './mirror/bundle.ts';
import { type FolderDeps, MirrorFolder } from './mirror/folder.ts';
import { measureTree } from './mirror/measure.ts';
import { mergeBranches } from './mirror/merge.ts';
import { keepTags, moveRefs } from './mirror/refs.ts';
import { idsOf, initRepository, readManifest, requireFewRefs, writeHead } from './mirror/repository.ts';
import { MirrorRoom, sweepFolders } from './mirror/room.ts';
import { requireConnected, takeInForeign } from './mirror/takeIn.ts';
import { asLines, type Git } from './process/git.ts';
import { pushRefs } from './remote/push.ts';
import { listRemote, notSmart, Remote } from './remote/remote.ts';
import { gitError } from './rules/failures.ts';
import { withoutKept } from './rules/keptRefs.ts';
import { isAcceptableRef, isObjectId } from './rules/names.ts';
import type { GitHooks, GitMirrors, MergeResult, RemoteSource, RepositoryRef, SavedMirror } from './types.ts';

export interface GitMirrorsDeps extends Omit<FolderDeps, 'config'> {
  config: Pick<Config, 'git'>;
  proxy: RunningEgressProxy;
  /** The owner of the egress lists and the egress log for a space. */
  ownerOf(spaceId: string): Promise<EgressOwner>;
}

/** Git in the mirrors of this machine, once per process. */
export function createGitMirrors(deps: GitMirrorsDeps): GitMirrors {
  const config = deps.config.git;
  const folderDeps: FolderDeps = { ...deps, config };
  const room = new MirrorRoom(folderDeps);
  const { records } = deps;
  // Separate slots, so that slow servers do not hold up work that needs no server.
  const [local, remotes] = [new Places({ all: config.slots }), new Places({ all: config.slots })];

  const remoteOf = (ref: RepositoryRef, source: RemoteSource, { onProgress }: Pick<GitHooks, 'onProgress'>) =>
    new Remote({ config, proxy: deps.proxy, ownerOf: () => deps.ownerOf(ref.spaceId), source, onProgress });

  /** Waits for a slot and works in the folder. Both together have the time limit of an operation. */
  async function within<T>(
    places: Places,
    ref: RepositoryRef,
    signal: AbortSignal,
    work: (folder: MirrorFolder) => Promise<T>,
  ): Promise<T> {
    const deadline = AbortSignal.timeout(config.timeoutMs);
    const ended = AbortSignal.any([signal, deadline]);
    try {
      // Take the slot before the lock: a waiting caller locks nothing.
      using _place = await places.take({ signal: ended });
      return await inFolder(ref, ended, work);
    } catch (error) {
      // If the quota is full, more time would not help.
      const isFull = error instanceof DomainError && error.code === 'QUOTA_EXCEEDED';
      if (deadline.aborted && !signal.aborted && !isFull) {
        const detail = `This took longer than ${config.timeoutMs / 60_000} minutes.`;
        throw gitError('GIT_REMOTE_TOO_SLOW', detail, { cause: error });
      }
      throw error;
    }
  }

  /** Works in the locked folder. The work is aborted if the disk runs full. */
  async function inFolder<T>(ref: RepositoryRef, signal: AbortSignal, work: (folder: MirrorFolder) => Promise<T>) {
    using watch = room.watch();
    const signals = AbortSignal.any([signal, watch.signal]);
    await using folder = await MirrorFolder.lock(folderDeps, ref, signals);
    try {
      await room.require();
      return await work(folder);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      if (error.code === 'GIT_DISK_FULL') await folder.discardPartial();
      // The mirror on this machine may be damaged.
      if (error.code === 'GIT_FAILED') await folder.distrust();
      if (error.cause === notSmart) await folder.discard();
      throw error;
    }
  }

  /** Brings the mirror to the last saved state, and works in it. */
  function withMirror<T>(
    places: Places,
    ref: RepositoryRef,
    signal: AbortSignal,
    work: (folder: MirrorFolder, saved: SavedMirror) => Promise<T>,
  ): Promise<T> {
    return within(places, ref, signal, async (folder) => {
      const saved = await records.current(ref);
      if (saved === undefined) throw notFound('repository');
      await folder.open(saved);
      return work(folder, saved);
    });
  }

  return {
    clone: (ref, source, hooks) =>
      within(remotes, ref, hooks.signal, async (folder) => {
        const saved = await records.current(ref);
        if (saved !== undefined) {
          await folder.open(saved);
          return resultOf(folder.git, saved, config);
        }
        using remote = remoteOf(ref, source, hooks);
        return await cloneInto(folder, remote, source, config);
      }),

    fetch: (ref, source, hooks) =>
      withMirror(remotes, ref, hooks.signal, async (folder, saved) => {
        using remote = remoteOf(ref, source, hooks);
        return await folder.change(saved, async (git) => {
          const { branches, unusable } = await listRemote(git, remote, config);
          const { manifest } = saved;
          const isShallow = manifest.shallow.length > 0;
          const tracked = Object.keys(manifest.refs)
            .filter((name) => name.startsWith('refs/remotes/origin/'))
            .map((name) => name.slice('refs/remotes/origin/'.length));
          const refspecs = isShallow
            ? tracked.filter((name) => branches.has(name)).flatMap(refspecsOf)
            : refspecsOf(null);
          // Without refspecs, git would fetch everything.
          if (refspecs.length === 0) return;
          const options = isShallow ? ['--force'] : ['--force', '--prune'];
          const { args, call } = fetchedRefs(refspecs, unusable);
          await remote.do(git, [...fetchCommand, ...options, ...args], call);
          await keepTags(git, manifest);
        });
      }),

    push: (ref, source, refs, hooks) =>
      withMirror(remotes, ref, hooks.signal, async (folder, saved) => {
        using remote = remoteOf(ref, source, hooks);
        let output = '';
        const state = await folder.change(saved, async (git) => {
          output = await pushRefs(git, remote, saved.manifest, refs);
        });
        return { ...state, output };
      }),

    fetchFiles: (ref, source, commit, lacking, hooks) =>
      withMirror(remotes, ref, hooks.signal, async (folder, saved) => {
        const { manifest } = saved;
        if (manifest.filter === null) return null;
        using remote = remoteOf(ref, source, hooks);
        const [known] = await knownCommits(folder.git, [commit]);
        if (known === undefined) return null;
        await folder.enrich(saved, (git) => bringFiles(git, remote, known));
        const tree = `${known}^{tree}`;
        const roots = lacking === 'all' ? [tree] : await amongObjects(folder.git, tree, lacking);
        return await makeBundle(folder.git, folder.bundles, { manifest, roots, have: [] });
      }),

    bundleFor: (ref, have, signal, kept = []) =>
      withMirror(local, ref, signal, async (folder, { version, manifest: all }) => {
        const manifest = withoutKept(all, kept);
        const known = await knownCommits(folder.git, have);
        const bundle = await makeBundle(folder.git, folder.bundles, { manifest, have: known });
        return { bundle, version, manifest };
      }),

    merge: (ref, merge, signal) =>
      withMirror(local, ref, signal, async (folder, saved) => {
        const merged = Promise.withResolvers<MergeResult>();
        await folder.change(saved, async (git) => {
          merged.resolve(await mergeBranches(git, saved.manifest, merge));
        });
        return merged.promise;
      }),

    receive: (ref, { bundle, refs, head }, signal) =>
      within(local, ref, signal, async (folder) => {
        const saved = await records.current(ref);
        if (saved !== undefined) await folder.open(saved);
        else await initRepository(folder.git, null);
        return folder.change(saved, async (git) => {
          const now = saved?.manifest ?? (await readManifest(git, null));
          requireFewRefs(now, refs, config.maxRefs);
          const { filter } = now;
          const targets = [...refs.flatMap(({ to }) => to ?? []), ...(isObjectId(head) ? [head] : [])];
          if (!targets.every(isObjectId)) {
            throw gitError('GIT_OBJECTS_REFUSED', 'A ref is to be moved to something that is not an object’s id.');
          }
          if (bundle !== undefined) await takeInForeign(git, bundle, { targets, filter, maxBytes: config.maxBytes });
          else {
            const known = new Set(idsOf(now));
            const others = targets.filter((id) => !known.has(id));
            if (others.length > 0) await requireConnected(git, { targets: others, filter });
          }
          await moveRefs(git, now, refs);
          if (head !== undefined) await moveHead(git, head);
        });
      }),

    state: (ref) => records.current(ref),

    measure: (ref, commit, signal) =>
      withMirror(local, ref, signal, async ({ git }) => {
        const [known] = await knownCommits(git, [commit]);
        if (known === undefined) throw gitError('GIT_REF_UNKNOWN', 'There is no such commit.');
        return measureTree(git, known, config);
      }),

    async remove(ref, signal) {
      const deadline = AbortSignal.timeout(config.timeoutMs);
      await using folder = await MirrorFolder.lock(folderDeps, ref, AbortSignal.any([signal, deadline]));
      await folder.remove();
    },

    sweep: (sweep) => sweepFolders(folderDeps, room, sweep),
  };
}

/** The ids that are commits in this repository. */
async function knownCommits(git: Git, ids: readonly string[]): Promise<string[]> {
  const asked = [...new Set(ids)].filter(isObjectId);
  if (asked.length === 0) return [];
  const args = ['cat-file', '--batch-check=%(objectname) %(objecttype)'];
  const found = await git.text(args, { input: asLines(asked) });
  return found.split('\n').flatMap((line) => (line.endsWith(' commit') ? line.slice(0, 40) : []));
}

/** The ids that belong to a tree. They come from a computer, which may name any object. */
async function amongObjects(git: Git, tree: string, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const all = await git.text(['rev-list', '--objects', '--no-object-names', '--no-walk', '--end-of-options', tree]);
  const known = new Set(all.split('\n'));
  return ids.filter((id) => known.has(id));
}

async function moveHead(git: Git, head: string): Promise<void> {
  const isBranch = head.startsWith('refs/heads/') && isAcceptableRef(head);
  if (!isBranch && !isObjectId(head)) throw gitError('GIT_BRANCH_NAME_REFUSED', 'HEAD cannot be there.');
  await writeHead(git, head);
}
