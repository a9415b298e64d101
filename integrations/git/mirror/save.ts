import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import type { GitFilter, SavedMirror } from '../types.ts';
import { bundleOfOnlyPack, makeBundle } from './bundleFile.ts';
import type { Git } from './git.ts';
import { countMoved, idsOf, isSameManifest, readManifest } from './repository.ts';
import { type Planned, planBundle, planWhole, type Saving, store } from './store.ts';
import { isTooMuch, lostBytes, makeWhole, savedBytes, WholeNote } from './whole.ts';

/** Git writes each ref that it moves into a file of its own, until they are packed. */
const manyRefs = 100;

/**
 * Saves what a repository has now, unless it is what is saved already: a bundle of what is new, or one of everything
 * where there is no other room.
 */
export async function saveRepository(
  saving: Saving,
  saved: SavedMirror | undefined,
  firstFilter: GitFilter | null = null,
): Promise<SavedMirror> {
  const { git, bundles } = saving;
  const filter = saved === undefined ? firstFilter : saved.manifest.filter;
  const manifest = await readManifest(git, filter);
  if (saved !== undefined && isSameManifest(saved.manifest, manifest)) return saved;
  if (countMoved(saved?.manifest, manifest) >= manyRefs) await git.do(['pack-refs', '--all']);
  const version = (saved?.version ?? 0) + 1;
  const next = { version, manifest };
  await using stack = new AsyncDisposableStack();

  /** Null where there is no object to save. */
  async function plan(): Promise<Planned | null> {
    // A shallow clone's border belongs to all of it.
    const have = idsOf(saved?.manifest);
    const only = have.length === 0 ? await bundleOfOnlyPack(git, manifest) : null;
    const known = new Set(have);
    const mayHaveMore = only === null && idsOf(manifest).some((id) => !known.has(id));
    const own = mayHaveMore ? await makeBundle(git, bundles, { manifest, have }) : null;
    if (own !== null) stack.use(own);
    const added = only ?? own;
    if (added === null) return null;
    try {
      const size = { version, bytes: added.bytes, replacesAll: saved === undefined };
      return { bundle: await planBundle(saving, stack, size), open: added.open };
    } catch (error) {
      // What is saved may hold much that no ref needs any more.
      if (!isTooMuch(error) || saved === undefined) throw error;
      const instead = await planForRoom(saved);
      if (instead === null) throw error;
      return instead;
    }
  }

  /** One of everything for the room that it gives back: where there may be enough then. */
  async function planForRoom(before: SavedMirror): Promise<Planned | null> {
    const lost = await orNull(lostBytes(git, before, manifest));
    if (lost === null) return null;
    const note = new WholeNote(git);
    const known = await note.bytesOf(before.version);
    const room = savedBytes(before) + (await saving.deps.records.room(saving.ref));
    if (known !== undefined && known - lost > room) return null;
    const making = orNull(makeWhole(git, bundles, manifest));
    return planWhole(saving, stack, version, making, (bytes) =>
      note.write(before.version, bytes + lost).catch(() => undefined),
    );
  }

  /** Where git fails at that, there is no room: this is what is told. */
  async function orNull<T>(work: Promise<T>): Promise<T | null> {
    try {
      return await work;
    } catch (failure) {
      await saving.doubt(failure);
      return null;
    }
  }

  return await store(saving, saved, next, await plan());
}

/** Saves what has come in packs without a move of any ref. */
export async function savePacks(
  saving: Saving,
  saved: SavedMirror,
  packs: readonly string[],
): Promise<Pick<SavedMirror, 'version'>> {
  const { git, bundles } = saving;
  const { manifest } = saved;
  const roots = await objectsIn(git, packs);
  await using made = await makeBundle(git, bundles, { manifest, roots, have: [] });
  if (made === null) return saved;
  await using stack = new AsyncDisposableStack();
  const version = saved.version + 1;
  const bundle = await planBundle(saving, stack, { version, bytes: made.bytes, replacesAll: false });
  return await store(saving, saved, { version, manifest }, { bundle, open: made.open });
}

async function objectsIn(git: Git, packs: readonly string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const name of packs) {
    const index = createReadStream(join(git.dir, 'objects', 'pack', `${name}.idx`));
    const listed = await git.text(['show-index'], { input: index });
    for (const line of listed.trimEnd().split('\n')) ids.push(line.split(' ')[1] ?? '');
  }
  return ids.filter((id) => id !== '');
}
