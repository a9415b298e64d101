import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DomainError } from '../../../models/errors.ts';
import { gitError } from '../rules/failures.ts';
import type { GitFilter, MirrorState, RepositoryRef, SavedMirror, StoredBundle } from '../types.ts';
import { bundleOfOnlyPack, makeBundle } from './bundleFile.ts';
import type { FolderDeps } from './folder.ts';
import type { Git } from './git.ts';
import { countMoved, idsOf, isSameManifest, readManifest, removeLeftovers } from './repository.ts';

const defaultMaxChain = 40;
/** Git writes each ref that it moves into a file of its own, until they are packed. */
const manyRefs = 100;

/** Saves what a repository has now, unless it is what is saved already: the bundle first, then the row. */
export async function saveRepository(
  deps: FolderDeps,
  ref: RepositoryRef,
  { git, bundles }: { git: Git; bundles: string },
  saved: SavedMirror | undefined,
): Promise<MirrorState> {
  const { records, storage, config, maxChain = defaultMaxChain } = deps;
  const filter = saved === undefined ? await filterOf(git) : saved.manifest.filter;
  const manifest = await readManifest(git, filter);
  if (saved !== undefined && isSameManifest(saved.manifest, manifest)) return saved;
  if (countMoved(saved?.manifest, manifest) >= manyRefs) await git.do(['pack-refs', '--all']);
  const version = (saved?.version ?? 0) + 1;
  await using stack = new AsyncDisposableStack();

  /** Makes a bundle for which there is room in the space; null where there is no object to save. */
  async function plan(have: readonly string[]) {
    const whole = have.length === 0 ? await bundleOfOnlyPack(git, manifest) : null;
    const made = whole === null ? stack.use(await makeBundle(git, bundles, { manifest, have })) : whole;
    if (made === null) return null;
    // Flat and random, as all of the store's: rows say what it belongs to.
    const bundle: StoredBundle = { version, objectKey: randomBytes(20).toString('hex'), bytes: made.bytes };
    stack.use(await records.plan(ref, bundle));
    return { bundle, open: made.open };
  }

  /** One of everything. Null where the space, or the limit of a file, has no room for it: the others do as well. */
  async function planAll() {
    try {
      await git.do(['repack', '-a', '-d', '-q']);
      return await plan([]);
    } catch (error) {
      const isTooMuch = error instanceof DomainError && ['QUOTA_EXCEEDED', 'GIT_TOO_LARGE'].includes(error.code);
      if (!isTooMuch) throw error;
      await removeLeftovers(git, { keepTemporaryPacks: false });
      return null;
    }
  }

  // A shallow clone's border belongs to all of it.
  const added = await plan(idsOf(saved?.manifest));
  // Where one of everything finds no room, the next attempt is after as many again: to make it costs much.
  const isDue = saved !== undefined && saved.bundles.length > 0 && saved.bundles.length % maxChain === 0;
  const all = added !== null && isDue ? await planAll() : null;
  const planned = all ?? added;
  if (planned !== null) {
    git.signal.throwIfAborted();
    const options = { fileName: 'repository.bundle', maxBytes: config.maxBytes * 2, reserve: async () => undefined };
    await storage.write(planned.bundle.objectKey, planned.open(), options);
  }
  const bundle = planned?.bundle ?? null;
  const replacesAll = saved === undefined || all !== null;
  const isSaved = await records.save(ref, { version, manifest, bundle, replacesAll });
  if (!isSaved) throw gitError('GIT_CONFLICT', 'The repository has been changed by another process.');
  return { version, manifest };
}

async function filterOf(git: Git): Promise<GitFilter | null> {
  const outcome = await git.run(['config', '--file', join(git.dir, 'config'), 'remote.origin.partialclonefilter']);
  const filter = String(outcome.output).trim();
  return filter === 'blob:none' || /^blob:limit=\d+$/.test(filter) ? (filter as GitFilter) : null;
}
