import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { gitError } from '../rules/failures.ts';
import type { GitFilter, MadeBundle, MirrorState, RepositoryRef, SavedMirror, StoredBundle } from '../types.ts';
import { bundleOfOnlyPack, makeBundle } from './bundleFile.ts';
import type { FolderDeps } from './folder.ts';
import type { Git } from './git.ts';
import { countMoved, idsOf, isSameManifest, readManifest } from './repository.ts';
import { isTooMuch, lostBytes, makeWhole, savedBytes, type Whole, WholeNote } from './whole.ts';

const defaultMaxChain = 40;
/** Everything is put together for what is a tenth of it, or of the room that is left. */
const worthPart = 10;
/** Git writes each ref that it moves into a file of its own, until they are packed. */
const manyRefs = 100;

interface Planned {
  bundle: StoredBundle;
  open: MadeBundle['open'];
  whole?: Whole;
}

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

  const reserve = async (bytes: number, { replacesAll }: { replacesAll: boolean }): Promise<StoredBundle> => {
    // Flat and random, as all of the store's: rows say what it belongs to.
    const bundle = { version, objectKey: randomBytes(20).toString('hex'), bytes };
    stack.use(await records.plan(ref, bundle, { replacesAll }));
    return bundle;
  };

  /** One of everything, in place of all others. Null where the space, or the limit of a file, has no room for it. */
  async function planAll(note?: (bytes: number) => Promise<void>): Promise<Planned | null> {
    let whole: Whole | null = null;
    try {
      whole = await makeWhole(git, bundles, manifest);
      if (whole === null) return null;
      stack.use(whole);
      const bundle = await reserve(whole.bytes, { replacesAll: true });
      return { bundle, open: whole.open, whole };
    } catch (error) {
      await whole?.drop();
      if (!isTooMuch(error)) throw error;
      if (whole !== null) await note?.(whole.bytes);
      return null;
    }
  }

  /** The same for the room that it gives back: where there may be enough then. */
  async function planForRoom(before: SavedMirror): Promise<Planned | null> {
    const lost = await lostBytes(git, before, manifest);
    const note = new WholeNote(git);
    const known = await note.bytesOf(before.version);
    const room = savedBytes(before) + (await records.room(ref));
    if (known !== undefined && known - lost > room) return null;
    return planAll((bytes) => note.write(before.version, bytes + lost));
  }

  /** Null where there is no object to save, and nothing to be gained. */
  async function plan(): Promise<Planned | null> {
    // A shallow clone's border belongs to all of it.
    const have = idsOf(saved?.manifest);
    const only = have.length === 0 ? await bundleOfOnlyPack(git, manifest) : null;
    const own = only === null ? await makeBundle(git, bundles, { manifest, have }) : null;
    if (own !== null) stack.use(own);
    const added = only ?? own;
    if (added === null) return saved !== undefined && (await isWorthwhile(saved)) ? planAll() : null;
    // Where one of everything finds no room, the next attempt is after as many again: to make it costs much.
    const isDue = saved !== undefined && saved.bundles.length > 0 && saved.bundles.length % maxChain === 0;
    const all = isDue ? await planAll() : null;
    if (all !== null) return all;
    try {
      return { bundle: await reserve(added.bytes, { replacesAll: saved === undefined }), open: added.open };
    } catch (error) {
      // What is saved may hold much that no ref needs any more.
      if (!isTooMuch(error) || saved === undefined || isDue) throw error;
      const instead = await planForRoom(saved);
      if (instead === null) throw error;
      return instead;
    }
  }

  /** Whether a change that brings nothing makes so much of what is saved needless that it is worth the work. */
  async function isWorthwhile(before: SavedMirror): Promise<boolean> {
    const lost = await lostBytes(git, before, manifest);
    return lost > 0 && (lost * worthPart >= savedBytes(before) || lost * worthPart >= (await records.room(ref)));
  }

  const planned = await plan();
  if (planned !== null) {
    git.signal.throwIfAborted();
    const options = { fileName: 'repository.bundle', maxBytes: config.maxBytes * 2, reserve: async () => undefined };
    await storage.write(planned.bundle.objectKey, planned.open(), options);
  }
  const bundle = planned?.bundle ?? null;
  const whole = planned?.whole;
  const replacesAll = saved === undefined || whole !== undefined;
  const isSaved = await records.save(ref, { version, manifest, bundle, replacesAll });
  if (!isSaved) throw gitError('GIT_CONFLICT', 'The repository has been changed by another process.');
  // Both can be had again.
  await whole?.settle().catch(() => undefined);
  return { version, manifest };
}

async function filterOf(git: Git): Promise<GitFilter | null> {
  const outcome = await git.run(['config', '--file', join(git.dir, 'config'), 'remote.origin.partialclonefilter']);
  const filter = String(outcome.output).trim();
  return filter === 'blob:none' || /^blob:limit=\d+$/.test(filter) ? (filter as GitFilter) : null;
}
