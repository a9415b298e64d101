import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import type { Config } from '../../config/index.ts';
import { btrfsDisks } from '../../integrations/computers/host/disks/btrfs.ts';
import { type Disks, isDiskFull, unfinished } from '../../integrations/computers/host/disks/disks.ts';
import { tend } from '../../integrations/computers/host/disks/tend.ts';
import { watchedDisks } from '../../integrations/computers/host/disks/watched.ts';
import { computerLayout, type HostLayout, hostLayout } from '../../integrations/computers/host/layout.ts';
import { giveFolder, identify, isRoot, makeComputerDir } from '../../integrations/computers/host/machine/setUp.ts';
import { openUids, type Uids } from '../../integrations/computers/host/machine/uids.ts';
import { readRecord, writeRecord } from '../../integrations/computers/host/records.ts';
import { findSystemProgram } from '../../integrations/computers/system/programs.ts';
import { TarFailed, unpack } from '../../integrations/computers/system/tar.ts';
import type { ComputerLimits } from '../../integrations/computers/types.ts';
import { findComputer } from '../../models/computers/computer.ts';
import { renameHost } from '../../models/computers/hosts.ts';
import type { Database } from '../../models/database/database.ts';
import type { Manifest } from '../vault/manifests.ts';
import type { Vault } from '../vault/vault.ts';
import { Source } from './source.ts';

type Home = NonNullable<Manifest['homes']>['computers'][number];

interface Deps {
  vault: Vault;
  config: Config;
  database: Database;
  signal: AbortSignal;
}

/**
 * Makes this machine the host of the backup's computers and restores their homes. The host gets a new id, since the
 * original host may run on the same machine. The computers are stopped and wake with their homes. A home that an
 * earlier attempt completed stays. A home that cannot be restored, or only in part, does not stop the others. Returns
 * those, in words.
 */
export async function loadHomes(
  { homes }: Pick<Manifest, 'homes'>,
  { vault, config, database, signal }: Deps,
): Promise<string[]> {
  if (homes === null) return [];
  const gaps: string[] = [];
  const layout = hostLayout(config.computers.dir);
  mkdirSync(layout.dir, { recursive: true });
  chmodSync(layout.dir, 0o711);
  const uids = isRoot() ? openUids() : undefined;
  const disks = await openDisks(layout, uids, config.computers.imageMiB);
  const isSaved = async (id: string) => ((await findComputer(database, id))?.homeSaveId ?? null) !== null;
  const tending = tend(disks, {
    everyMs: 1_000,
    failed: (error) => gaps.push(`room for homes: ${error instanceof Error ? error.message : String(error)}`),
  });
  try {
    // The largest comes last, so that one home does not take the room of many.
    for (const home of homes.computers.toSorted((one, other) => one.content.bytes - other.content.bytes)) {
      const gap = await loadHome({ vault, layout, disks, uids, signal, isSaved }, home);
      if (gap !== undefined) gaps.push(gap);
    }
  } finally {
    await tending.stop();
    await disks.close();
  }
  await renameHost(database, homes.hostId, identify(layout));
  return gaps;
}

/** Opens disks of the kind that the host itself would use here. */
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
    isSaved,
  }: Omit<Deps, 'config' | 'database'> & {
    layout: HostLayout;
    disks: Disks;
    uids: Uids | undefined;
    isSaved: (computerId: string) => Promise<boolean>;
  },
  { computerId, spaceId, limits, content }: Home,
): Promise<string | undefined> {
  signal.throwIfAborted();
  const paths = computerLayout(layout, computerId);
  if (existsSync(paths.home)) return undefined; // a finished home is whole
  makeComputerDir(paths.dir);
  const known = readRecord(layout, computerId);
  const uid = known === undefined ? (uids?.take(paths.dir) ?? null) : known.uid;
  const record = { computerId, uid, limits: limits as unknown as ComputerLimits, spaceId, run: null };
  writeRecord(layout, record);
  // As with copies: an unfinished home has another name, and the host removes it.
  const draft = unfinished(paths.home);
  await disks.remove(draft);
  // The limit is set afterwards. Files that shared bytes take more room unpacked, and a home over its limit is just
  // full.
  await disks.create(draft, { uid: undefined, limitMiB: undefined });
  const source = new Source(vault.read(content));
  let gap: string | undefined;
  let isLeftOut = false;
  try {
    await unpack(draft, source.bytes(), signal).catch(async (error: unknown) => {
      signal.throwIfAborted();
      // A failure to read the backup concerns all homes, not only this one.
      if (source.failure !== undefined || !(error instanceof TarFailed)) throw error;
      if (!isDiskFull(error)) {
        gap = `a part of the home of ${computerId} (${error.message})`;
        return;
      }
      // A full disk stops all homes, so the partly unpacked one is removed.
      gap = `the home of ${computerId}, for which there is no room (${error.message})`;
      await disks.remove(draft);
      // A wake makes the home from its last save. An empty one would be saved over that.
      isLeftOut = await isSaved(computerId);
      if (!isLeftOut) await disks.create(draft, { uid: undefined, limitMiB: undefined });
    });
    if (isLeftOut) return gap;
    await disks.finish(paths.home, { uid: uid ?? undefined, limitMiB: record.limits.diskMiB, signal });
  } catch (error) {
    signal.throwIfAborted();
    if (source.failure !== undefined) throw error;
    gap = `the home of ${computerId} (${(error as Error).message})`;
  }
  giveFolder(paths.processes, uid);
  return gap;
}
