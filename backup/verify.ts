import { BackupError } from './errors.ts';
import { inOrder } from './make/inOrder.ts';
import { piecesOf } from './make/prune.ts';
import { type Manifest, readManifest } from './vault/manifests.ts';
import type { Vault } from './vault/vault.ts';

const readsAtOnce = 8;
const faultsShown = 20;
const advice =
  'An older one may be whole: npm run -s atrium -- backup verify ID. Make a new one now, which stores again what is missing: npm run -s atrium -- backup. Remove damaged pieces before that: it looks at their names alone.';

export interface Verified {
  id: string;
  pieces: number;
  bytes: number;
  /** Objects that the bucket had lost before the backup. */
  missing: Manifest['missing'];
}

/**
 * Reads a whole backup: the newest, or the one with `id`. Throws {@link BackupError} that lists missing and damaged
 * pieces.
 */
export async function verify(vault: Vault, id?: string): Promise<Verified> {
  const manifest = await readManifest(vault, id);
  const seen = new Set<string>();
  const faults: string[] = [];
  const read = async (piece: string): Promise<number> => {
    try {
      return (await vault.readPiece(piece)).length;
    } catch (error) {
      if (!(error instanceof BackupError)) throw error;
      faults.push(error.message);
      return 0;
    }
  };
  async function* tasks() {
    for await (const piece of piecesOf(vault, manifest)) {
      if (seen.has(piece)) continue;
      seen.add(piece);
      yield () => read(piece);
    }
  }
  let bytes = 0;
  for await (const length of inOrder(tasks(), readsAtOnce)) bytes += length;
  if (faults.length === 0) return { id: manifest.id, pieces: seen.size, bytes, missing: manifest.missing };
  const shown = faults.slice(0, faultsShown).join('\n');
  throw new BackupError(
    `The backup ${manifest.id} cannot be restored as a whole. ${faults.length} faults:\n${shown}\n${advice}`,
  );
}
