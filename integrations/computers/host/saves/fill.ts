import { chmodSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { requirePlainMountPoints } from '../../drivers/bubblewrap/mountPoints.ts';
import { run } from '../../spawner/spawner.ts';
import { feed, openProgram } from '../../spawner/streams.ts';
import { unpack } from '../../system/tar.ts';
import { type HostContext, requireHomes } from '../context.ts';
import { isDiskFull, unfinished } from '../disks/disks.ts';
import { giveAll } from '../disks/watched.ts';
import type { FillOptions, StoredSave } from '../host.ts';
import { HostError } from '../hostErrors.ts';
import { computerLayout, type HostLayout, rootIn } from '../layout.ts';
import { isRunning } from '../life/end.ts';
import { requireRoom, startFailure } from '../life/start.ts';
import { giveFolder, makeComputerDir } from '../machine/setUp.ts';
import { usersFor } from '../machine/systems.ts';
import { type ComputerRecord, isHosted, readRecord, writeRecord } from '../records.ts';
import { syncHomes } from './btrfs.ts';
import { folderOfUse, note, type Snapshots, snapshotIn } from './snapshots.ts';

type FillContext = HostContext & { snapshots: Snapshots };

const copyTimeoutMs = 30 * 60_000;

/**
 * Makes the home of a computer from saves. Until the home is whole and in its place, the host does not have the
 * computer. A repeated call goes on behind the last save that was received completely.
 */
export async function fill(
  context: FillContext,
  computerId: string,
  chain: readonly StoredSave[],
  { limits, spaceId, base, replaces = false, keepsHome = false }: Omit<FillOptions, 'signal'>,
  signal: AbortSignal,
): Promise<void> {
  requireHomes(context);
  const { layout, disks } = context;
  const paths = computerLayout(layout, computerId);
  const known = readRecord(layout, computerId);
  const isThere = known !== undefined && isHosted(known) && existsSync(paths.home);
  if (isThere && !replaces) return;
  const head = chain.at(-1);
  if (known?.removing === true) throw new HostError('COMPUTER_ABSENT', `${computerId} is being removed`);
  if (isRunning(known?.run)) throw new HostError('HOME_IN_USE', `${computerId} runs`);
  if (head === undefined || (head.format === 'btrfs' && disks.kind !== 'limited')) {
    throw new HostError('SAVE_UNREADABLE', 'the homes of this host are ordinary folders, which btrfs cannot fill');
  }
  // A snapshot that is here shares its room with the home.
  requireRoom(context, context.snapshots.has(head.saveId) ? 0 : Math.max(...chain.map(({ homeBytes }) => homeBytes)));
  makeComputerDir(paths.dir);
  const users = usersFor(context, { base });
  const takeUser = () => users?.take(paths.dir, head.uid ?? undefined) ?? null;
  const uid = known !== undefined && known.base === base ? known.uid : takeUser();
  const record: ComputerRecord = { computerId, uid, ...(base && { base }), limits, spaceId, run: known?.run ?? null };
  if (!isThere && known?.carried !== true) writeRecord(layout, { ...record, filling: true });
  try {
    // After a kill, the present home may have been removed, while the volume with its copy is whole.
    if (known?.carried !== true || existsSync(paths.home)) {
      if (head.format === 'tar') await unpackHome(context, paths.home, head, signal);
      else await receiveHome(context, computerId, chain, signal);
      if (keepsHome && isThere) await carryHome(paths.home, known, signal);
    }
    signal.throwIfAborted();
    // A home in use stays in its place until the other is whole.
    writeRecord(layout, { ...record, filling: true, ...(keepsHome && { carried: true }) });
    const isOwners = base !== undefined || (head.format === 'btrfs' && head.uid === uid);
    await disks.finish(paths.home, {
      uid: isOwners ? undefined : (uid ?? undefined),
      limitMiB: limits.diskMiB,
      signal,
    });
  } catch (error) {
    if (isThere && existsSync(paths.home)) {
      writeRecord(layout, known);
      if (uid !== null && uid !== known.uid) users?.free(uid);
    }
    if (existsSync(paths.home) || !keepsHome) await disks.remove(unfinished(paths.home));
    throw isDiskFull(error) ? startFailure(error) : error;
  }
  for (const folder of [paths.processes, paths.run]) {
    giveFolder(folder, uid);
    if (uid !== known?.uid) await giveAll(folder, uid ?? undefined, signal);
  }
  // Without snapshots, this says since when the home is the save.
  if (disks.kind === 'watched') await note(folderOfUse(layout, computerId, head.saveId));
  writeRecord(layout, record);
  if (known?.uid != null && known.uid !== uid) users?.free(known.uid);
}

/** Copies the present home into the root file system that replaces it, with the owner that its home folder has. */
async function carryHome(home: string, { base }: ComputerRecord, signal: AbortSignal): Promise<void> {
  const root = rootIn(unfinished(home));
  const inside = ['/home/user'];
  requirePlainMountPoints(root, inside);
  if (base !== undefined) requirePlainMountPoints(rootIn(home), inside);
  const from = base === undefined ? home : join(rootIn(home), ...inside);
  const to = join(root, ...inside);
  const { uid, gid, mode } = statSync(to);
  await run('rm', ['-rf', '--one-file-system', '--', to], { signal, timeoutMs: copyTimeoutMs });
  await run('cp', ['--archive', '--reflink=always', '--', from, to], { signal, timeoutMs: copyTimeoutMs });
  if (base === undefined) {
    await run('chown', ['-hR', `${uid}:${gid}`, '--', to], { signal, timeoutMs: copyTimeoutMs });
    chmodSync(to, mode & 0o7777);
  }
}

async function unpackHome({ disks }: HostContext, home: string, save: StoredSave, signal: AbortSignal): Promise<void> {
  await disks.remove(unfinished(home));
  // The limit is set afterwards. Files that shared bytes take more room unpacked, and a home over its limit is full.
  await disks.create(unfinished(home), { uid: undefined, limitMiB: undefined });
  await unpack(unfinished(home), save.open(signal), signal);
}

/** Receives what follows the last save of which this host has a snapshot, whichever computer uses that. */
async function receiveHome(
  { snapshots, layout, disks }: FillContext,
  computerId: string,
  chain: readonly StoredSave[],
  signal: AbortSignal,
): Promise<void> {
  const missing: StoredSave[] = [];
  for (const save of chain.toReversed()) {
    if (await snapshots.share(computerId, save.saveId, signal)) break;
    missing.unshift(save);
  }
  for (const save of missing) {
    await snapshots.use(computerId, save.saveId, (folder, inLane) => receive(layout, folder, save, inLane), signal);
  }
  const head = chain.at(-1);
  if (head === undefined) return;
  await disks.snapshot(snapshotIn(snapshots.folder(head.saveId)), computerLayout(layout, computerId).home, signal);
}

/** btrfs takes what it gets for true. What comes here was sealed by an Atrium, and is opened by `open`. */
async function receive({ homes }: HostLayout, folder: string, save: StoredSave, signal: AbortSignal): Promise<void> {
  await feed(await openProgram('btrfs', ['receive', '--quiet', folder], { signal }), save.open(signal));
  // A snapshot is complete before its files are on the disk.
  await syncHomes(homes);
}
