import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeDurably } from '../../../disk/durable.ts';
import type { SavedMirror } from '../types.ts';
import type { FolderState } from './folderState.ts';
import { planWhole, type Saving, store } from './store.ts';
import { lostBytes, makeWhole, savedBytes } from './whole.ts';

const defaultMaxChain = 40;
/** Everything is put together for what is a tenth of it, or of the room that is left. */
const worthPart = 10;
/** What has failed is tried again after so long. */
const retryMs = 3_600_000;

/** An attempt that has brought nothing, in a file beside the mirror: it costs much. */
interface Attempt {
  /** How many were there to be put together. */
  bundles: number;
  at: number;
  /** There was no room for one of everything; else it failed, or was killed. */
  isTooMuch: boolean;
}

/**
 * Puts the bundles of a repository together where that is due, after its state was saved, which stays saved whatever
 * becomes of this: a failure is noted, and it is tried again after a later change. Answers what is saved then.
 */
export async function putTogether(
  saving: Saving,
  state: FolderState,
  saved: SavedMirror,
  before: SavedMirror | undefined,
): Promise<SavedMirror> {
  const { deps, ref, git } = saving;
  const file = join(git.home, '..', 'together.json');
  const note = (isTooMuch: boolean) => {
    const attempt: Attempt = { bundles: saved.bundles.length, at: Date.now(), isTooMuch };
    return writeDurably(file, JSON.stringify(attempt));
  };
  // With half of an operation's time at most, and no more than what is left of that.
  const limited = { ...saving, git: git.within(AbortSignal.timeout(deps.config.timeoutMs / 2)) };
  let [now, hasBegun] = [saved, false];
  try {
    if (!(await isDue(limited, await readAttempt(file, saved), saved, before))) return now;
    // Before it is begun: it may end this process.
    await note(false);
    await state.begin(saved.version);
    hasBegun = true;
    const whole = await saveWhole(limited, saved);
    now = whole ?? saved;
    await state.settle(now.version);
    hasBegun = false;
    if (whole === null) await note(true);
    else await rm(file, { force: true });
  } catch (error) {
    deps.logger?.warn({ err: error, itemId: ref.itemId }, 'The bundles of a repository could not be put together.');
    await note(false).catch(() => undefined);
    // Where that fails too, the next operation does it.
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

/** Removes what has come since it was begun. */
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
  // Where one of everything finds no room, the next attempt is after as many again.
  if (saved.bundles.length >= (tried?.bundles ?? 0) + maxChain) return true;
  if (tried !== undefined && !tried.isTooMuch) return Date.now() - tried.at >= retryMs;
  if (before === undefined || before.version === saved.version || lastOf(before) !== lastOf(saved)) return false;
  // A change that brings nothing may make so much of what is saved needless that it is worth the work.
  const lost = await lostBytes(git, before, saved.manifest);
  return lost > 0 && (lost * worthPart >= savedBytes(before) || lost * worthPart >= (await records.room(ref)));
}

function lastOf({ bundles }: SavedMirror): string | undefined {
  return bundles.at(-1)?.objectKey;
}

/** Undefined where there is none, or its bundles have been put together since. */
async function readAttempt(file: string, { bundles }: SavedMirror): Promise<Attempt | undefined> {
  try {
    const attempt = JSON.parse(await readFile(file, 'utf8')) as Attempt;
    return attempt.bundles > bundles.length ? undefined : attempt;
  } catch {
    return undefined;
  }
}
