import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { bundleOfPack, makeBundle } from '../mirror/bundle.ts';
import type { FolderDeps } from '../mirror/folder.ts';
import {
  countMoved,
  idsOf,
  isSameManifest,
  onlyPack,
  packFolder,
  readManifest,
  removeLeftovers,
} from '../mirror/repository.ts';
import type { Git } from '../process/git.ts';
import { gitError } from '../rules/failures.ts';
import type { GitFilter, MadeBundle, MirrorState, RepositoryRef, SavedMirror, StoredBundle } from '../types.ts';
import { isTooMuch, lostBytes, makeWhole, noteOfWhole, savedBytes, type Whole } from './whole.ts';

/** Git writes each moved ref into a file of its own, until refs are packed. */
const manyRefs = 100;

/** A repository that is being saved. */
export interface Saving {
  deps: FolderDeps;
  ref: RepositoryRef;
  git: Git;
  /** The folder in which bundles are made. */
  bundles: string;
  /** Called with each failure of git: the repository on this machine may be damaged. */
  doubt(error: unknown): Promise<void>;
}

interface Planned {
  bundle: StoredBundle;
  open: MadeBundle['open'];
  /** Set if the bundle replaces all others. */
  whole?: Whole;
}

/**
 * Saves the current state unless it is already saved: a bundle of the new objects, or a complete one if only that fits.
 */
export async function saveRepository(
  saving: Saving,
  saved: SavedMirror | undefined,
  firstFilter: GitFilter | null = null,
): Promise<SavedMirror> {
  const { git } = saving;
  const manifest = await readManifest(git, saved === undefined ? firstFilter : saved.manifest.filter);
  if (saved !== undefined && isSameManifest(saved.manifest, manifest)) return saved;
  if (countMoved(saved?.manifest, manifest) >= manyRefs) await git.do(['pack-refs', '--all']);
  const version = (saved?.version ?? 0) + 1;
  await using stack = new AsyncDisposableStack();
  const added = await newObjects(saving, stack, saved, manifest);
  let planned: Planned | null = null;
  if (added !== null) {
    try {
      const size = { version, bytes: added.bytes, replacesAll: saved === undefined };
      planned = { bundle: await planBundle(saving, stack, size), open: added.open };
    } catch (error) {
      // The saved bundles may hold many objects that no ref needs any more.
      if (!isTooMuch(error) || saved === undefined) throw error;
      planned = await planForRoom(saving, stack, saved, { version, manifest });
      if (planned === null) throw error;
    }
  }
  return await store(saving, saved, { version, manifest }, planned);
}

/** The objects that are not saved yet; null if there are none. */
async function newObjects(
  { git, bundles }: Saving,
  stack: AsyncDisposableStack,
  saved: SavedMirror | undefined,
  manifest: SavedMirror['manifest'],
): Promise<Pick<MadeBundle, 'bytes' | 'open'> | null> {
  const have = idsOf(saved?.manifest);
  const wanted = idsOf(manifest);
  // A fresh clone is one pack. Sending it as it is saves packing everything again.
  const isFresh = have.length === 0 && wanted.length > 0 && manifest.filter === null;
  const pack = isFresh ? await onlyPack(git) : undefined;
  if (pack !== undefined) return bundleOfPack(git, manifest, pack);
  const known = new Set(have);
  if (wanted.every((id) => known.has(id))) return null;
  const made = await makeBundle(git, bundles, { manifest, have });
  if (made !== null) stack.use(made);
  return made;
}

/** Plans one complete bundle. It may fit, because it replaces the saved bundles. */
async function planForRoom(
  saving: Saving,
  stack: AsyncDisposableStack,
  saved: SavedMirror,
  { version, manifest }: MirrorState,
): Promise<Planned | null> {
  const { git, bundles, deps, ref } = saving;
  // A failure of git here counts as no room, and the caller reports that.
  const orNull = <T>(work: Promise<T>) => work.catch((error: unknown) => saving.doubt(error).then(() => null));
  const lost = await orNull(lostBytes(git, saved, manifest));
  if (lost === null) return null;
  const known = await noteOfWhole(git).bytesOf(saved.version);
  const room = savedBytes(saved) + (await deps.records.room(ref));
  if (known !== undefined && known - lost > room) return null;
  return planWhole(saving, stack, version, orNull(makeWhole(git, bundles, manifest)), (bytes) =>
    noteOfWhole(git).write(saved.version, bytes + lost),
  );
}

/** Saves objects that came in packs without moving a ref. Returns the saved version. */
export async function savePacks(saving: Saving, saved: SavedMirror, packs: readonly string[]): Promise<number> {
  const { git, bundles } = saving;
  const { manifest } = saved;
  const roots = await objectsIn(git, packs);
  await using made = await makeBundle(git, bundles, { manifest, roots, have: [] });
  if (made === null) return saved.version;
  await using stack = new AsyncDisposableStack();
  const version = saved.version + 1;
  const bundle = await planBundle(saving, stack, { version, bytes: made.bytes, replacesAll: false });
  await store(saving, saved, { version, manifest }, { bundle, open: made.open });
  return version;
}

async function objectsIn(git: Git, packs: readonly string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const name of packs) {
    const index = createReadStream(join(packFolder(git), `${name}.idx`));
    const listed = await git.text(['show-index'], { input: index });
    for (const line of listed.trimEnd().split('\n')) ids.push(line.split(' ')[1] ?? '');
  }
  return ids.filter((id) => id !== '');
}

/**
 * Counts a bundle against the quota before it is stored. The stack's disposal removes the bundle unless it is saved.
 */
async function planBundle(
  { deps, ref }: Saving,
  stack: AsyncDisposableStack,
  { version, bytes, replacesAll }: { version: number; bytes: number; replacesAll: boolean },
): Promise<StoredBundle> {
  // Keys are random, like all keys of the store: rows say what an object belongs to.
  const bundle = { version, objectKey: randomBytes(20).toString('hex'), bytes };
  stack.use(await deps.records.plan(ref, bundle, { replacesAll }));
  return bundle;
}

/** Plans one complete bundle that replaces all others. Null if it exceeds the quota or the file size limit. */
export async function planWhole(
  saving: Saving,
  stack: AsyncDisposableStack,
  version: number,
  making: Promise<Whole | null>,
  noteTooMuch?: (bytes: number) => Promise<void>,
): Promise<Planned | null> {
  let whole: Whole | null = null;
  try {
    whole = await making;
    if (whole === null) return null;
    stack.use(whole);
    const bundle = await planBundle(saving, stack, { version, bytes: whole.bytes, replacesAll: true });
    return { bundle, open: whole.open, whole };
  } catch (error) {
    await whole?.drop();
    if (!isTooMuch(error)) throw error;
    if (whole !== null) await noteTooMuch?.(whole.bytes).catch(() => undefined);
    return null;
  }
}

/** Saves a state on top of another one: the bundle first, then the row. */
export async function store(
  { deps, ref, git }: Saving,
  saved: SavedMirror | undefined,
  { version, manifest }: MirrorState,
  planned: Planned | null,
): Promise<SavedMirror> {
  const whole = planned?.whole;
  const replacesAll = saved === undefined || whole !== undefined;
  let bundle: (StoredBundle & { sha256: Buffer }) | null = null;
  if (planned !== null) {
    git.signal.throwIfAborted();
    const options = {
      fileName: 'repository.bundle',
      maxBytes: deps.config.maxBytes * 2,
      reserve: async () => undefined,
    };
    const bytes = whole === undefined ? planned.open() : unlessAborted(planned.open(), git.signal);
    const { sha256 } = await deps.storage.write(planned.bundle.objectKey, bytes, options);
    bundle = { ...planned.bundle, sha256 };
  }
  const isSaved = await deps.records.save(ref, { version, manifest, bundle, replacesAll });
  if (!isSaved) throw gitError('GIT_CONFLICT', 'The repository has been changed by another process.');
  // Best effort: a later operation removes the leftovers.
  await whole
    ?.settle()
    .catch(() => removeLeftovers(git))
    .catch(() => undefined);
  const others = replacesAll ? [] : saved.bundles;
  return { version, manifest, bundles: planned === null ? others : [...others, planned.bundle] };
}

async function* unlessAborted(bytes: Readable, signal: AbortSignal): AsyncIterable<Buffer> {
  for await (const chunk of bytes) {
    signal.throwIfAborted();
    yield chunk;
  }
}
