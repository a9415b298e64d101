import { chmodSync, existsSync, statSync } from 'node:fs';
import { ensureHome, plainHomeIn } from '../../drivers/bubblewrap/mountPoints.ts';
import { run } from '../../spawner/spawner.ts';
import { feed, openProgram } from '../../spawner/streams.ts';
import { unpack } from '../../system/tar.ts';
import type { BaseName } from '../../types.ts';
import { type HostContext, requireHomes } from '../context.ts';
import { isDiskFull, unfinished } from '../disks/disks.ts';
import { giveAll, hasSetIds } from '../disks/watched.ts';
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
  const known = await endSwap(context, readRecord(layout, computerId), signal);
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
  const uid = takeUser(context, computerId, known, { base, preferred: head.uid ?? undefined });
  const record: ComputerRecord = { computerId, uid, ...(base && { base }), limits, spaceId, run: known?.run ?? null };
  // Its users are recorded before the long work. A home in use stays in its place until the other is whole.
  if (!isThere) writeRecord(layout, { ...record, filling: true });
  else if (uid !== known.uid) writeRecord(layout, { ...known, nextUid: uid });
  let isSwapping = false;
  try {
    if (head.format === 'tar') await unpackHome(context, paths.home, head, signal);
    else await receiveHome(context, computerId, chain, signal);
    if (keepsHome && isThere) await carryHome(paths.home, known, signal);
    signal.throwIfAborted();
    const isOwners = base !== undefined || (head.format === 'btrfs' && head.uid === uid);
    if (!isOwners && (await hasSetIds(unfinished(paths.home), signal))) await context.snapshots.keepOnly(computerId);
    await disks.finish(paths.home, {
      uid: isOwners ? undefined : (uid ?? undefined),
      limitMiB: limits.diskMiB,
      signal,
      onWhole() {
        isSwapping = true;
        writeRecord(layout, { ...record, swap: { formerUid: known?.uid ?? null } });
      },
    });
    // Without snapshots, this says since when the home is the save.
    if (disks.kind === 'watched') await note(folderOfUse(layout, computerId, head.saveId));
    await endSwap(context, readRecord(layout, computerId), signal);
  } catch (error) {
    if (!isSwapping) await disks.remove(unfinished(paths.home));
    throw isDiskFull(error) ? startFailure(error) : error;
  }
}

/**
 * Forgets what an unfinished fill has left of a computer that has no saves any more, so that a start makes an empty home.
 * Does nothing if this host has the computer, or knows nothing of it. The logs of its processes stay.
 */
export async function forgetFill(
  context: FillContext,
  computerId: string,
  base: BaseName | undefined,
  signal: AbortSignal,
): Promise<void> {
  requireHomes(context);
  const { layout, disks, snapshots } = context;
  const known = await endSwap(context, readRecord(layout, computerId), signal);
  if (known?.filling !== true || known.removing === true) return;
  const { home } = computerLayout(layout, computerId);
  await snapshots.keepOnly(computerId);
  await disks.remove(unfinished(home));
  await disks.remove(home);
  const uid = takeUser(context, computerId, known, { base, preferred: undefined });
  const { limits, spaceId, run } = known;
  // As if nothing replaced it: what belongs to the computer gets its user, and another one that it had is free.
  const swap = { formerUid: known.uid };
  const empty = { computerId, uid, ...(base && { base }), limits, ...(spaceId && { spaceId }), run, swap };
  writeRecord(layout, empty);
  await endSwap(context, empty, signal);
}

/** The users of a computer: those that it has, or further ones if its home becomes of another kind. */
function takeUser(
  context: HostContext,
  computerId: string,
  known: ComputerRecord | undefined,
  { base, preferred }: { base: BaseName | undefined; preferred: number | undefined },
): number | null {
  if (known !== undefined && known.base === base) return known.uid;
  if (known?.nextUid !== undefined) return known.nextUid;
  const { dir } = computerLayout(context.layout, computerId);
  return usersFor(context, { base })?.take(dir, preferred) ?? null;
}

/**
 * Puts the volume that replaces a home into its place, if a swap has begun, and gives its user what else belongs to the
 * computer. Returns the record as it is then.
 */
export async function endSwap(
  { layout, disks, uids }: HostContext,
  record: ComputerRecord | undefined,
  signal: AbortSignal,
): Promise<ComputerRecord | undefined> {
  if (record?.swap === undefined) return record;
  const { swap, ...done } = record;
  const { home, processes, run: runDir } = computerLayout(layout, record.computerId);
  if (existsSync(unfinished(home))) {
    await disks.finish(home, { uid: undefined, limitMiB: record.limits.diskMiB, signal });
  }
  for (const folder of [processes, runDir]) {
    giveFolder(folder, record.uid);
    await giveAll(folder, record.uid ?? undefined, signal);
  }
  writeRecord(layout, done);
  if (swap.formerUid !== null && swap.formerUid !== record.uid) uids?.free(swap.formerUid);
  return done;
}

/** Copies the present home into the root file system that replaces it, with the owner that its home folder has. */
async function carryHome(home: string, { base }: ComputerRecord, signal: AbortSignal): Promise<void> {
  const root = rootIn(unfinished(home));
  ensureHome(root);
  const from = base === undefined ? home : plainHomeIn(rootIn(home));
  const to = plainHomeIn(root);
  if (from === undefined || to === undefined) throw new HostError('START_FAILED', '/home/user is no folder');
  const { uid, gid, mode } = statSync(to);
  const options = { signal, timeoutMs: copyTimeoutMs };
  await run('rm', ['-rf', '--one-file-system', '--', to], options);
  await run('cp', ['--archive', '--reflink=auto', '--', from, to], options).catch((error: unknown) => {
    // Its message has the name of a file.
    throw /File name too long/.test(String(error)) ? new HostError('PATH_TOO_LONG', 'a path is too long') : error;
  });
  const { uid: former } = statSync(from);
  // In a root file system, other users than the home's own may have files in it.
  const whose = base === undefined ? [] : [`--from=${former}`];
  if (base === undefined || former !== uid) await run('chown', ['-hR', ...whose, `${uid}:${gid}`, '--', to], options);
  if (base === undefined) chmodSync(to, mode & 0o7777);
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
