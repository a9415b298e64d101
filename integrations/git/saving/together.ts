import { join } from 'node:path';
import type { FolderState } from '../mirror/folderState.ts';
import { Note } from '../mirror/note.ts';
import type { SavedMirror } from '../types.ts';
import { planWhole, type Saving, store } from './save.ts';
import { lostBytes, makeWhole, savedBytes } from './whole.ts';

const defaultMaxChain = 40;
/** Bundles are merged if that saves a tenth of their size, or a tenth of the remaining room. */
const worthPart = 10;
/** A failed attempt is repeated after this time. */
const retryMs = 3_600_000;

/** An attempt that did not replace the bundles. It is noted beside the mirror, because each attempt takes long. */
interface Attempt {
  /** How many bundles there were. */
  bundles: number;
  at: number;
  /** True if there was no room for a complete bundle; false if the attempt failed or was killed. */
  isTooMuch: boolean;
}

/**
 * Replaces all bundles of a repository by one, if that is due. The state is already saved and stays saved: after a
 * failure, a later change tries again. Returns the state that is saved in the end.
 */
export async function putTogether(
  saving: Saving,
  state: FolderState,
  saved: SavedMirror,
  before: SavedMirror | undefined,
): Promise<SavedMirror> {
  const { deps, ref } = saving;
  const note = new Note<Attempt>(join(saving.git.home, '..'), 'together');
  const attempted = (isTooMuch: boolean) => note.write({ bundles: saved.bundles.length, at: Date.now(), isTooMuch });
  // At most half of an operation's time, and no more than remains of it.
  const limited = { ...saving, git: saving.git.within(AbortSignal.timeout(deps.config.timeoutMs / 2)) };
  let [now, hasBegun] = [saved, false];
  try {
    const tried = await note.read();
    // Fewer bundles than at the attempt: they have been merged since.
    const isCurrent = tried !== undefined && tried.bundles <= saved.bundles.length;
    if (!(await isDue(limited, isCurrent ? tried : undefined, saved, before))) return now;
    // Record the attempt first, because it may end this process.
    await attempted(false);
    await state.begin(saved.version);
    hasBegun = true;
    const whole = await saveWhole(limited, saved);
    now = whole ?? saved;
    await state.settle(now.version);
    hasBegun = false;
    if (whole === null) await attempted(true);
    else await note.forget();
  } catch (error) {
    deps.logger?.warn({ err: error, itemId: ref.itemId }, 'The bundles of a repository could not be put together.');
    await attempted(false).catch(() => undefined);
    // If this fails too, the next operation cleans up.
    if (hasBegun) await takeBack(state, saved).catch(() => undefined);
    await saving.doubt(error).catch(() => undefined);
  }
  return now;
}

async function saveWhole(saving: Saving, saved: SavedMirror): Promise<SavedMirror | null> {
  await using stack = new AsyncDisposableStack();
  const next = { version: saved.version + 1, manifest: saved.manifest };
  const making = makeWhole(saving.git, saving.bundles, saved.manifest);
  const planned = await planWhole(saving, stack, next.version, making);
  return planned === null ? null : await store(saving, saved, next, planned);
}

/** Removes the leftovers of the failed attempt. */
async function takeBack(state: FolderState, saved: SavedMirror): Promise<void> {
  const begun = await state.read();
  if (begun !== undefined && (await state.undo(begun))) await state.settle(saved.version);
}

async function isDue(
  { deps, ref, git }: Saving,
  tried: Attempt | undefined,
  saved: SavedMirror,
  before: SavedMirror | undefined,
): Promise<boolean> {
  const { maxChain = defaultMaxChain, records } = deps;
  // The first attempt is due after `maxChain` bundles, and the next one after as many again.
  if (saved.bundles.length >= (tried?.bundles ?? 0) + maxChain) return true;
  if (tried !== undefined && !tried.isTooMuch) return Date.now() - tried.at >= retryMs;
  const hasNew = before?.bundles.at(-1)?.objectKey !== saved.bundles.at(-1)?.objectKey;
  if (before === undefined || before.version === saved.version || hasNew) return false;
  // A change without new objects may make many saved objects needless.
  const lost = await lostBytes(git, before, saved.manifest);
  return lost > 0 && (lost * worthPart >= savedBytes(before) || lost * worthPart >= (await records.room(ref)));
}
