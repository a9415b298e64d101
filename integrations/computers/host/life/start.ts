import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { orAfter } from '../../../../base/async.ts';
import type { Driver } from '../../drivers/driver.ts';
import type { DriveMount } from '../../drives/daemon.ts';
import type { HolderCgroups, HolderReport, HolderSpec, SandboxPids, SystemMount } from '../../protocol/holderSpec.ts';
import { bootId, endFirst, type Stamp, stampOf } from '../../system/stamps.ts';
import type { BaseName, ComputerSpec } from '../../types.ts';
import { driverOf, type HostContext, usualDriver } from '../context.ts';
import { describeRoom, isDiskFull, leastForHome } from '../disks/disks.ts';
import { HostError, within } from '../hostErrors.ts';
import { baseVolume, computerLayout, imageVolume, rootIn } from '../layout.ts';
import { giveFolder, makeComputerDir } from '../machine/setUp.ts';
import { requireSystems, usersFor } from '../machine/systems.ts';
import { type ComputerRecord, type ComputerRun, isHosted, lastingOf, readRecord, writeRecord } from '../records.ts';
import { end, isRunning, takeDown } from './end.ts';
import type { Holder } from './holders.ts';

/** How long a start waits for the drive. */
const mountMs = 10_000;

export async function start(
  context: HostContext,
  spec: ComputerSpec,
  signal: AbortSignal,
): Promise<{ startedAt: string }> {
  const { driver } = { ...usualDriver(context), ...spec };
  if (driver === undefined || !context.drivers.has(driver)) {
    throw new HostError('START_FAILED', `this host does not run computers with ${driver ?? 'anything now'}`);
  }
  const known = readRecord(context.layout, spec.computerId);
  const running = known && (await settleEarlier(context, known, spec));
  if (running !== undefined) return running;
  const record = await makeComputer(context, spec, known).catch((error: unknown) => {
    throw isDiskFull(error) ? startFailure(error) : error;
  });
  record.run = newRun({ ...spec, driver });
  const holder = context.holders.take();
  const givenUp = new AbortController();
  try {
    const work = launch(context, record, record.run, holder, givenUp.signal);
    return await within(work, context.deadlines.startMs, 'its start', signal);
  } catch (error) {
    givenUp.abort(error);
    holder.kill();
    const reason = error instanceof Error ? error.message : String(error);
    await end(context, record, reason, 0);
    throw startFailure(error);
  } finally {
    holder.letGo();
  }
}

/** Turns the error of a failed start into a {@link HostError}. */
export function startFailure(error: unknown): HostError {
  if (error instanceof HostError && (error.code !== 'START_FAILED' || !isDiskFull(error))) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new HostError(isDiskFull(error) ? 'DISK_FULL' : 'START_FAILED', reason);
}

/** Throws `DISK_FULL` if there is no room for another home with so many bytes. Existing homes can still be used. */
export function requireRoom({ disks }: HostContext, homeBytes = 0): void {
  const room = disks.room();
  if (room.freeBytes < homeBytes + leastForHome) throw new HostError('DISK_FULL', describeRoom(room));
}

/** Settles an earlier run. Returns an answer if nothing needs to start. */
async function settleEarlier(
  context: HostContext,
  record: ComputerRecord,
  spec: ComputerSpec,
): Promise<{ startedAt: string } | undefined> {
  const { run: last } = record;
  if (record.removing === true) throw new HostError('COMPUTER_ABSENT', `${spec.computerId} is being removed`);
  // A start would make an empty home.
  if (!isHosted(record)) throw new HostError('COMPUTER_ABSENT', `the home of ${spec.computerId} is not whole`);
  if (last === null) return undefined;
  const { generation } = last.spec;
  if (generation > spec.generation) {
    throw new HostError('GENERATION_OUTDATED', `generation ${generation} of ${spec.computerId} is newer`);
  }
  if (generation === spec.generation && isRunning(last) && last.startedAt !== null)
    return { startedAt: last.startedAt };
  if (last.phase === 'running' || (last.phase === 'ended' && generation === spec.generation)) {
    // A running computer is ended cleanly. Other runs are only cleaned up.
    const graceMs = isRunning(last) ? context.deadlines.stopGraceMs : 0;
    const { reason } = await end(context, record, 'it ended without a word', graceMs);
    if (generation < spec.generation) return undefined;
    throw new HostError('GENERATION_ENDED', `generation ${generation} of ${spec.computerId} has ended: ${reason}`);
  }
  // A start that was cut off, for example by kill -9, begins again.
  await takeDown(context, record);
  return undefined;
}

export function newRun(spec: ComputerSpec): ComputerRun {
  const nothing = { holder: null, sandbox: null, startedAt: null, pausedAt: null, end: null };
  return { spec, phase: 'starting', bootId: bootId(), ...nothing };
}

/** Makes a computer's user, folder and home if they are missing, and sets its limits. */
async function makeComputer(
  context: HostContext,
  { computerId, limits, base: wanted, image }: ComputerSpec,
  known: ComputerRecord | undefined,
): Promise<ComputerRecord> {
  const { layout, disks } = context;
  const { base } = known ?? { base: wanted };
  const paths = computerLayout(layout, computerId);
  const users = usersFor(context, { base });
  if (!existsSync(paths.home)) requireRoom(context);
  makeComputerDir(paths.dir);
  const taken = () => ({ computerId, uid: users?.take(paths.dir) ?? null, ...(base && { base }) });
  const lasting = known === undefined ? taken() : lastingOf(known);
  const record: ComputerRecord = { ...lasting, limits, run: known?.run ?? null };
  // Record the user before any file belongs to it. Record the disk limit once it holds.
  if (known === undefined) writeRecord(layout, { ...record, limits: { ...limits, diskMiB: 0 } });
  if (known?.limits.diskMiB !== limits.diskMiB || !existsSync(paths.home)) {
    await disks.create(paths.home, {
      ...ownerOf(record),
      limitMiB: limits.diskMiB,
      from: base === undefined || existsSync(paths.home) ? undefined : volumeOf(context, base, image),
    });
    writeRecord(layout, record);
  }
  for (const folder of [paths.processes, paths.run]) giveFolder(folder, record.uid);
  return record;
}

/** The owner of a volume's files. With a base they have the ids that are seen inside. */
export function ownerOf({ uid, base }: ComputerRecord): { uid: number | undefined } {
  return { uid: base === undefined ? (uid ?? undefined) : undefined };
}

/** What a computer without files begins with. */
function volumeOf({ layout }: HostContext, base: BaseName, image: string | undefined): string {
  const volume = image === undefined ? baseVolume(layout, base) : imageVolume(layout, image);
  if (!existsSync(volume)) throw new HostError('BASE_FAILED', `${image ?? base} is not made yet`);
  return volume;
}

async function launch(
  context: HostContext,
  record: ComputerRecord,
  started: ComputerRun,
  holder: Holder,
  givenUp: AbortSignal,
) {
  const { layout } = context;
  const driver = driverOf(context, record);
  const { confinement } = driver;
  const save = (change: Partial<ComputerRun>) => {
    givenUp.throwIfAborted(); // its end is recorded already
    Object.assign(started, change);
    writeRecord(layout, record);
  };
  rmSync(computerLayout(layout, record.computerId).end, { force: true });
  const pid = await holder.pid;
  const drive = await context.drives?.prepare(record, started, driver);
  save({ holder: required(stampOf(pid), 'its holder'), ...(drive && { drive }) });
  const cgroups = confinement.prepare(record);
  const mount = (init?: number) => drive && context.drives?.mount(record.computerId, drive, init);
  if (context.drives?.follow === false) await mount();
  const sent = await holderSpec(context, record, started.spec, cgroups, drive);
  givenUp.throwIfAborted(); // nobody would close what is opened after the end
  holder.send(sent);
  // The kernel takes a while to move a process to a cgroup. Meanwhile the holder makes the sandbox, in which nothing
  // runs before the release.
  confinement.joinHolder(record.computerId, pid);
  const egress = openEgress(context, record);
  egress.catch(() => undefined); // awaited below
  const { pids } = await reported(holder, 'blocked');
  givenUp.throwIfAborted();
  const mounted = context.drives?.follow ? mount(pids?.init) : undefined;
  const sandbox = joinSandbox(driver, record, pids);
  save({ sandbox });
  holder.send({ type: 'release', ...(await driver.beforeRelease?.(record)) });
  // The agent starts meanwhile, but no program of the tenant.
  // Without an answer, the drive comes later.
  const drives = mounted && orAfter(mounted, mountMs, undefined);
  await Promise.all([egress, driver.beforeOpen?.(record), drives]);
  holder.send({ type: 'open' });
  const { startedAt } = await reported(holder, 'running');
  save({ phase: 'running', startedAt });
  confinement.settleHolder(record);
  return { startedAt };
}

/** Moves the processes of a sandbox into its cgroups. For a container, the engine does this. */
export function joinSandbox(
  { confinement }: Driver,
  { computerId }: ComputerRecord,
  pids: SandboxPids | null,
): ComputerRun['sandbox'] {
  if (pids === null) return null;
  const monitor = required(stampOf(pids.monitor), 'its sandbox');
  const init = required(stampOf(pids.init), 'its sandbox');
  confinement.joinSandbox(computerId, [monitor.pid, init.pid]);
  endFirst([monitor.pid, init.pid]);
  return { monitor, init };
}

export function required(stamp: Stamp | undefined, what: string): Stamp {
  if (stamp === undefined) throw new HostError('START_FAILED', `${what} ended at once`);
  return stamp;
}

export async function reported<T extends HolderReport['type']>(
  holder: Holder,
  type: T,
): Promise<Extract<HolderReport, { type: T }>> {
  const report = await holder.report();
  if (report.type === type) return report as Extract<HolderReport, { type: T }>;
  const reason = report.type === 'failed' ? report.reason : `its holder reported ${report.type} instead of ${type}`;
  throw new HostError('START_FAILED', reason);
}

/** `record` may also be the record of a short-lived sandbox on the computer's files. */
export async function holderSpec(
  context: HostContext,
  record: ComputerRecord,
  spec: ComputerSpec,
  cgroups: HolderCgroups | null,
  drive?: DriveMount,
): Promise<HolderSpec> {
  const { options, deadlines } = context;
  const paths = computerLayout(context.layout, spec.computerId);
  const sandbox = driverOf(context, record).sandbox({
    record,
    computerDir: paths.dir,
    homeDir: paths.home,
    viewDir: paths.view,
    limits: spec.limits,
    readOnly: options.readOnly?.(spec) ?? [],
    ...systemOf(context, record, paths),
    ...(drive && { drive: { folder: drive.target, mount: context.layout.drives } }),
  });
  return {
    computer: spec,
    purpose: 'computer',
    become: record.uid === null ? null : { uid: record.uid, gid: record.uid },
    socketPath: paths.socket,
    processesDir: paths.processes,
    endFile: paths.end,
    sandbox: await sandbox,
    cgroups,
    egressSocket: options.egress === undefined ? null : paths.egressSocket,
    driveSocket: drive?.syncSocket ?? null,
    settings: {
      agentStartTimeoutMs: deadlines.startMs,
      stopGraceMs: deadlines.stopGraceMs,
      idleTimeoutMs: 60_000,
    },
  };
}

function systemOf(
  context: HostContext,
  { base, uid }: ComputerRecord,
  { home, root }: { home: string; root: string },
): { system?: SystemMount } {
  if (base === undefined || uid === null) return {};
  const { mounter } = requireSystems(context);
  mkdirSync(root, { recursive: true, mode: 0o700 });
  return { system: { firstUid: uid, folder: rootIn(home), target: root, mounter } };
}

/** Opens the computer's egress. Also called at a takeover, because the sockets of the earlier process ended with it. */
export async function openEgress({ options, layout }: HostContext, { computerId, uid }: ComputerRecord): Promise<void> {
  const { egressSocket: path, egressDraft: draft } = computerLayout(layout, computerId);
  await options.egress?.open({ computerId, path, ...(uid !== null && { owner: { uid, gid: uid, draft } }) });
}
