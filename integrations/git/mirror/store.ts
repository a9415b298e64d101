import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { gitError } from '../rules/failures.ts';
import type { MadeBundle, MirrorState, RepositoryRef, SavedMirror, StoredBundle } from '../types.ts';
import type { FolderDeps } from './folder.ts';
import type { Git } from './git.ts';
import { removeLeftovers } from './repository.ts';
import { isTooMuch, type Whole } from './whole.ts';

/** A repository that is saved. */
export interface Saving {
  deps: FolderDeps;
  ref: RepositoryRef;
  git: Git;
  /** Where bundles are made. */
  bundles: string;
  /** Git has failed: what this machine has may be the reason. */
  doubt(error: unknown): Promise<void>;
}

export interface Planned {
  bundle: StoredBundle;
  open: MadeBundle['open'];
  /** It takes the place of all others. */
  whole?: Whole;
}

/** Counts a bundle before it is stored. Unless it has been saved by then, it goes with the stack. */
export async function planBundle(
  { deps, ref }: Saving,
  stack: AsyncDisposableStack,
  { version, bytes, replacesAll }: { version: number; bytes: number; replacesAll: boolean },
): Promise<StoredBundle> {
  // Flat and random, as all of the store's: rows say what it belongs to.
  const bundle = { version, objectKey: randomBytes(20).toString('hex'), bytes };
  stack.use(await deps.records.plan(ref, bundle, { replacesAll }));
  return bundle;
}

/** One of everything, in place of all others. Null where the space, or the limit of a file, has no room for it. */
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
    if (whole !== null) await noteTooMuch?.(whole.bytes);
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
  let stored: { sha256: Buffer } | undefined;
  if (planned !== null) {
    git.signal.throwIfAborted();
    const maxBytes = deps.config.maxBytes * 2;
    const options = { fileName: 'repository.bundle', maxBytes, reserve: async () => undefined };
    const bytes = whole === undefined ? planned.open() : unlessAborted(planned.open(), git.signal);
    stored = await deps.storage.write(planned.bundle.objectKey, bytes, options);
  }
  const bundle = planned?.bundle ?? null;
  const replacesAll = saved === undefined || whole !== undefined;
  const next = bundle === null || stored === undefined ? null : { ...bundle, sha256: stored.sha256 };
  const isSaved = await deps.records.save(ref, { version, manifest, bundle: next, replacesAll });
  if (!isSaved) throw gitError('GIT_CONFLICT', 'The repository has been changed by another process.');
  // Both can be had again.
  await whole
    ?.settle()
    .catch(() => removeLeftovers(git, { keepTemporaryPacks: false }))
    .catch(() => undefined);
  const others = replacesAll ? [] : saved.bundles;
  return { version, manifest, bundles: bundle === null ? others : [...others, bundle] };
}

async function* unlessAborted(bytes: Readable, signal: AbortSignal): AsyncIterable<Buffer> {
  for await (const chunk of bytes) {
    signal.throwIfAborted();
    yield chunk;
  }
}
