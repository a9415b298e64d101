import { join } from 'node:path';
import { DomainError } from '../../../base/errors.ts';
import { bundleOfPack, makeBundle } from '../mirror/bundle.ts';
import { Note } from '../mirror/note.ts';
import {
  idsOf,
  packFolder,
  packsIn,
  removeLeftovers,
  removeLooseObjects,
  removePacksBut,
} from '../mirror/repository.ts';
import { asLines, type Git } from '../process/git.ts';
import type { MadeBundle, RefManifest, SavedMirror } from '../types.ts';

/** For this time, the noted size of a complete bundle counts as its current size. */
const noteMs = 3_600_000;

/** A complete bundle, which replaces all saved ones. */
export interface Whole extends Pick<MadeBundle, 'bytes' | 'open'>, AsyncDisposable {
  /** Called when the bundle is saved. Removes the packs that it replaces. */
  settle(): Promise<void>;
  /** Called when there is no room for the bundle. Removes its pack. */
  drop(): Promise<void>;
}

/**
 * Packs all objects that refs need, which takes long. The mirror keeps its packs until the bundle is saved, so a
 * failure changes nothing.
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
  const drop = async () => {
    await removePacksBut(git, before);
    await removeLeftovers(git);
  };
  try {
    const said = await git.text(
      ['pack-objects', '--revs', '--quiet', '--delta-base-offset', join(packFolder(git), 'pack')],
      { input: asLines(idsOf(manifest)) },
    );
    // The name may be that of an existing pack.
    const name = `pack-${said.trim()}`;
    const settle = async () => {
      await removePacksBut(git, [name]);
      await removeLooseObjects(git);
    };
    return { ...(await bundleOfPack(git, manifest, name)), settle, drop, async [Symbol.asyncDispose]() {} };
  } catch (error) {
    await drop();
    throw error;
  }
}

/** Estimates the bytes that a complete bundle would save; 0 if refs have lost nothing. */
export async function lostBytes(git: Git, saved: SavedMirror, manifest: RefManifest): Promise<number> {
  const ids = idsOf(manifest);
  const kept = new Set(ids);
  const gone = idsOf(saved.manifest).filter((id) => !kept.has(id));
  if (gone.length === 0) return 0;
  const lost = await sizeOf(git, manifest, [...gone, ...ids.map((id) => `^${id}`)]);
  if (lost === 0) return 0;
  // The bundles also hold objects that refs lost earlier.
  return Math.max(lost, savedBytes(saved) - (await sizeOf(git, manifest, ids)));
}

export function savedBytes({ bundles }: SavedMirror): number {
  return bundles.reduce((sum, { bytes }) => sum + bytes, 0);
}

async function sizeOf(git: Git, { filter }: RefManifest, revisions: readonly string[]): Promise<number> {
  const partial = filter === null ? [] : ['--missing=allow-any'];
  const args = ['rev-list', '--objects', '--disk-usage', ...partial, '--stdin'];
  return Number((await git.text(args, { input: asLines(revisions) })).trim());
}

/** Notes beside the mirror the size of a complete bundle that did not fit. Measuring it again takes long. */
export function noteOfWhole(git: Git) {
  const note = new Note<{ version: number; bytes: number; at: number }>(join(git.home, '..'), 'whole');
  return {
    /**
     * `version` is the saved version that the complete bundle built on. `bytes` include the objects that refs have lost
     * since.
     */
    write: (version: number, bytes: number) => note.write({ version, bytes, at: Date.now() }),
    /** Undefined for another version, or if the note is old. */
    async bytesOf(version: number): Promise<number | undefined> {
      const noted = await note.read();
      return noted?.version === version && Date.now() - noted.at < noteMs ? noted.bytes : undefined;
    },
  };
}

/** Whether a bundle was too large for the quota or the file size limit. The saved bundles then stay. */
export function isTooMuch(error: unknown): boolean {
  return error instanceof DomainError && ['QUOTA_EXCEEDED', 'GIT_TOO_LARGE'].includes(error.code);
}
