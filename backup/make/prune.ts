import { fromLines } from '../vault/lines.ts';
import { listBackups, type NamedManifest, type ObjectEntry, readManifest, removeManifest } from '../vault/manifests.ts';
import type { Vault } from '../vault/vault.ts';

const removedAtOnce = 1_000;

/**
 * Removes all backups except the newest `keep`, then the pieces that no remaining backup needs. A backup is removed
 * before its pieces, so that an interruption leaves no backup with missing pieces; the next run removes the rest. No
 * backup may be added meanwhile. Returns the removed backups.
 */
export async function prune(vault: Vault, keep: number, { signal }: { signal: AbortSignal }): Promise<string[]> {
  const ids = await listBackups(vault);
  const removed = ids.slice(0, -keep);
  const needed = new Set<string>();
  // Read first, so that nothing is removed if a kept backup cannot be read.
  for (const id of ids.slice(-keep)) {
    for await (const piece of piecesOf(vault, await readManifest(vault, id))) needed.add(piece);
  }
  for (const id of removed) await removeManifest(vault, id);
  const unneeded = [...(await vault.look())].filter((id) => !needed.has(id));
  for (let at = 0; at < unneeded.length; at += removedAtOnce) {
    signal.throwIfAborted();
    await vault.removePieces(unneeded.slice(at, at + removedAtOnce));
  }
  return removed;
}

export async function* piecesOf(vault: Vault, manifest: NamedManifest): AsyncGenerator<string> {
  const { database, objects, tenants, homes } = manifest;
  const contents = [...tenants, ...(homes?.computers ?? [])].map(({ content }) => content);
  for (const { pieces } of [database, objects, ...contents]) yield* pieces;
  for await (const { pieces } of fromLines<ObjectEntry>(vault.read(objects))) yield* pieces;
}
