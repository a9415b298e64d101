import { chmodSync, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import type { Config } from '../../config/index.ts';
import { btrfsDisks } from '../../integrations/computers/host/disks/btrfs.ts';
import { type Disks, unfinished } from '../../integrations/computers/host/disks/disks.ts';
import { watchedDisks } from '../../integrations/computers/host/disks/watched.ts';
import { computerLayout, type HostLayout, hostLayout } from '../../integrations/computers/host/layout.ts';
import { findSystemProgram } from '../../integrations/computers/host/programs.ts';
import { readRecord, writeRecord } from '../../integrations/computers/host/records.ts';
import { giveFolder, isRoot, makeComputerDir } from '../../integrations/computers/host/setUp.ts';
import { openUids, type Uids } from '../../integrations/computers/host/uids.ts';
import type { ComputerLimits } from '../../integrations/computers/types.ts';
import { unpack } from '../tar.ts';
import type { Manifest } from '../vault/manifests.ts';
import type { Vault } from '../vault/vault.ts';

type Home = NonNullable<Manifest['homes']>['computers'][number];

interface Deps {
  vault: Vault;
  config: Config;
  signal: AbortSignal;
}

/**
 * Makes this machine the host that the computers of the backup know, with their homes. They are stopped, and wake with
 * them. What is there as a whole from an attempt before stays.
 */
export async function loadHomes({ homes }: Manifest, { vault, config, signal }: Deps): Promise<void> {
  if (homes === null) return;
  const layout = hostLayout(config.computers.dir);
  mkdirSync(layout.dir, { recursive: true });
  chmodSync(layout.dir, 0o711);
  const uids = isRoot() ? openUids() : undefined;
  const disks = await openDisks(layout, uids, config.computers.imageMiB);
  try {
    for (const home of homes.computers) await loadHome({ vault, layout, disks, uids, signal }, home);
  } finally {
    await disks.close();
  }
  // Last: a host without its homes is none.
  writeFileSync(`${layout.identity}.new`, JSON.stringify({ hostId: homes.hostId }), { mode: 0o600, flush: true });
  renameSync(`${layout.identity}.new`, layout.identity);
}

/** As the host itself would have them here. */
async function openDisks(layout: HostLayout, uids: Uids | undefined, sizeMiB: number | undefined): Promise<Disks> {
  if (uids !== undefined && findSystemProgram('mkfs.btrfs') !== undefined) {
    const found = await btrfsDisks({ image: layout.image, homes: layout.homes, sizeMiB });
    if ('kind' in found) return found;
  }
  mkdirSync(layout.homes, { recursive: true });
  chmodSync(layout.homes, 0o711);
  return watchedDisks(layout.homes);
}

async function loadHome(
  {
    vault,
    layout,
    disks,
    uids,
    signal,
  }: Omit<Deps, 'config'> & { layout: HostLayout; disks: Disks; uids: Uids | undefined },
  { computerId, spaceId, limits, content }: Home,
): Promise<void> {
  signal.throwIfAborted();
  const paths = computerLayout(layout, computerId);
  if (existsSync(paths.home)) return; // it arrives whole
  makeComputerDir(paths.dir);
  const known = readRecord(layout, computerId);
  const uid = known === undefined ? (uids?.take(paths.dir) ?? null) : known.uid;
  const record = { computerId, uid, limits: limits as unknown as ComputerLimits, spaceId, run: null };
  writeRecord(layout, record);
  // As copies are made: what is unfinished has another name, which the host clears away.
  const draft = unfinished(paths.home);
  await disks.remove(draft);
  await disks.create(draft, { uid: undefined, limitMiB: record.limits.diskMiB });
  await unpack(draft, vault.read(content), signal);
  await disks.finish(paths.home, { uid: uid ?? undefined, limitMiB: record.limits.diskMiB, signal });
  giveFolder(paths.processes, uid);
}
