import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DomainError } from '../../../base/errors.ts';
import { writeDurably } from '../../../disk/durable.ts';
import type { MadeBundle, RefManifest, SavedMirror } from '../types.ts';
import { bundleOfPack, makeBundle } from './bundleFile.ts';
import type { Git } from './git.ts';
import { idsOf, packsIn, removeLeftovers, removeLooseObjects, removePacks } from './repository.ts';

/** For so long, what everything came to is taken for what it would come to now. */
const noteMs = 3_600_000;

interface Note {
  /** The saved version on top of which everything was put together. */
  version: number;
  /** With what refs had lost since that version. */
  bytes: number;
  at: number;
}

/** A bundle of everything, in place of all that are saved. */
export interface Whole extends Pick<MadeBundle, 'bytes' | 'open'>, AsyncDisposable {
  /** It is saved: what it replaces goes from this machine. */
  settle(): Promise<void>;
  /** There is no room for it. */
  drop(): Promise<void>;
}

/**
 * Puts everything together that refs need, which costs much. What the mirror has stays until that is saved: after a
 * failure it is as it was.
 */
export async function makeWhole(git: Git, bundles: string, manifest: RefManifest): Promise<Whole | null> {
  if (idsOf(manifest).length === 0) return null;
  if (manifest.filter !== null) {
    const made = await makeBundle(git, bundles, { manifest, have: [] });
    if (made === null) return null;
    const settle = async () => void (await git.do(['repack', '-a', '-d', '-q']));
    return { ...made, settle, drop: async () => undefined };
  }
  const before = await packsIn(git);
  const removeAdded = async () => {
    const added = (await packsIn(git)).filter((name) => !before.includes(name));
    await removePacks(git, added);
    await removeLeftovers(git, { keepTemporaryPacks: false });
  };
  try {
    const name = await packAll(git, manifest);
    return {
      ...(await bundleOfPack(git, manifest, name)),
      async settle() {
        const old = before.filter((other) => other !== name);
        await removePacks(git, old);
        await removeLooseObjects(git);
      },
      drop: removeAdded,
      async [Symbol.asyncDispose]() {},
    };
  } catch (error) {
    await removeAdded();
    throw error;
  }
}

/** One pack of everything, beside those that are there: by its name, which may be one of theirs. */
async function packAll(git: Git, manifest: RefManifest): Promise<string> {
  const options = ['--revs', '--quiet', '--delta-base-offset'];
  const said = await git.text(['pack-objects', ...options, join(git.dir, 'objects', 'pack', 'pack')], {
    input: idsOf(manifest)
      .map((id) => `${id}\n`)
      .join(''),
  });
  return `pack-${said.trim()}`;
}

/** About how much less would be saved if everything were put together; 0 where refs have lost nothing. */
export async function lostBytes(git: Git, saved: SavedMirror, manifest: RefManifest): Promise<number> {
  const ids = idsOf(manifest);
  // A look in the list for each would take seconds where there are tens of thousands.
  const kept = new Set(ids);
  const gone = idsOf(saved.manifest).filter((id) => !kept.has(id));
  if (gone.length === 0) return 0;
  const lost = await sizeOf(git, manifest, { of: gone, but: ids });
  if (lost === 0) return 0;
  // What was lost before is among the bundles, too.
  const everything = await sizeOf(git, manifest, { of: ids, but: [] });
  return Math.max(lost, savedBytes(saved) - everything);
}

export function savedBytes({ bundles }: SavedMirror): number {
  return bundles.reduce((sum, { bytes }) => sum + bytes, 0);
}

async function sizeOf(
  git: Git,
  { filter }: RefManifest,
  { of, but }: { of: readonly string[]; but: readonly string[] },
): Promise<number> {
  const partial = filter === null ? [] : ['--missing=allow-any'];
  const said = await git.text(['rev-list', '--objects', '--disk-usage', ...partial, '--stdin'], {
    input: [...of, ...but.map((id) => `^${id}`)].map((line) => `${line}\n`).join(''),
  });
  return Number(said.trim());
}

/** What everything came to when there was no room for it, beside the mirror: to find that out again costs much. */
export class WholeNote {
  readonly #file: string;

  constructor(git: Git) {
    this.#file = join(git.home, '..', 'whole.json');
  }

  write(version: number, bytes: number): Promise<void> {
    const note: Note = { version, bytes, at: Date.now() };
    return writeDurably(this.#file, JSON.stringify(note));
  }

  /** Of this version, and not long ago; else undefined. */
  async bytesOf(version: number): Promise<number | undefined> {
    try {
      const note = JSON.parse(await readFile(this.#file, 'utf8')) as Note;
      return note.version === version && Date.now() - note.at < noteMs ? note.bytes : undefined;
    } catch {
      return undefined;
    }
  }
}

/** Where there is no room for everything, the others do as well. */
export function isTooMuch(error: unknown): boolean {
  return error instanceof DomainError && ['QUOTA_EXCEEDED', 'GIT_TOO_LARGE'].includes(error.code);
}
