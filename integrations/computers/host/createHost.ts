import { resolve } from 'node:path';
import { awaitDrivers } from '../drivers/drivers.ts';
import { HostClient } from '../hostClient.ts';
import { Bases, baseNames } from './bases.ts';
import { driversOf, type HostContext, requireHomes } from './context.ts';
import { tend } from './disks/tend.ts';
import { Drives } from './drives/drives.ts';
import { FileSandboxes, type SandboxWork } from './files/fileSandboxes.ts';
import type { Host, HostDeadlines, HostOptions } from './host.ts';
import { HostError } from './hostErrors.ts';
import { takeLock } from './hostLock.ts';
import { Images } from './images/images.ts';
import { Lanes } from './lanes.ts';
import { computerLayout, hostLayout, isComputerId } from './layout.ts';
import { end, isRunning } from './life/end.ts';
import { fork, type InSource, inLaneOf } from './life/fork.ts';
import { createHolderPool } from './life/holders.ts';
import { inspect, inspectForList, metrics } from './life/look.ts';
import { pause, resume } from './life/pause.ts';
import { openEgress, start } from './life/start.ts';
import { destroy, sweep, type Users } from './life/sweep.ts';
import { endUnasked, watch } from './life/watch.ts';
import { setUpMachine } from './machine/setUp.ts';
import { type ComputerRecord, isHosted, listComputerIds, listRecords, readRecord } from './records.ts';
import { Saves } from './saves/saves.ts';
import { moveOldSnapshots } from './saves/snapshots.ts';

const usualDeadlines: HostDeadlines = {
  startMs: 20_000,
  closeMs: 5_000,
  stopGraceMs: 2_000,
  clearMs: 10_000,
  freezeMs: 5_000,
  workMs: 10 * 60_000,
  watchMs: 1_000,
  askMs: 5_000,
  silentMs: 60_000,
  driverMs: 5_000,
  driverMostMs: 300_000,
  registryMs: 120_000,
};

/**
 * Makes this machine a host of computers, and takes over the computers that an earlier process of this folder left
 * running. Throws {@link HostError} `COMPUTERS_OFF` with advice if the machine cannot run any, and `FOLDER_TAKEN` while
 * another process uses the folder.
 */
export async function createHost(given: HostOptions): Promise<Host> {
  const options = { ...given, dir: resolve(given.dir) };
  const layout = hostLayout(options.dir);
  const machinery = await setUpMachine(layout, options);
  const lock = takeLock(layout.lock);
  const deadlines = { ...usualDeadlines, ...options.deadlines };
  const drive = options.drive ?? { refused: 'it was started without drives' };
  await Drives.share(layout, drive);
  const context: HostContext = {
    ...machinery,
    layout,
    options,
    deadlines,
    holders: createHolderPool({
      size: options.spareHolders ?? 1,
      logs: layout.logs,
      command: [...(machinery.ownView ?? []), ...machinery.holderCommand],
    }),
    drives: undefined,
    log: options.log ?? (() => undefined),
  };
  const lanes = new Lanes();
  const sandboxes: Record<SandboxWork, FileSandboxes> = {
    files: new FileSandboxes(context, lanes, 'files'),
    work: new FileSandboxes(context, lanes, 'work'),
  };
  const known = (computerId: string): ComputerRecord => {
    const record = isComputerId(computerId) ? readRecord(layout, computerId) : undefined;
    if (record === undefined || !isHosted(record)) {
      throw new HostError('COMPUTER_ABSENT', `${computerId} is not on this host`);
    }
    return record;
  };
  const release = async (computerId: string) => {
    for (const each of Object.values(sandboxes)) await each.close(computerId);
  };
  if (context.disks.kind === 'limited') await moveOldSnapshots(context);
  const saves = new Saves({ context, lanes, known, release });
  const bases = new Bases(context);
  const images = new Images(context);
  const users = { lanes, saves, sandboxes: Object.values(sandboxes) };
  const sweepAll = () => sweep(context, users);
  for (const done of await sweepAll()) context.log('info', { done }, 'Put computers of an earlier process in order');
  for (const record of listRecords(layout).filter(({ run }) => isRunning(run))) {
    context.confinement.settleHolder(record); // the earlier process may have been killed just before this
    await openEgress(context, record);
  }
  context.drives = await Drives.open(
    { layout, options: drive, log: context.log, watchMs: deadlines.watchMs },
    listRecords(layout).filter(({ run }) => isRunning(run)),
  );
  const watching = watch(context, lanes, sandboxes.work);
  const awaiting = awaitDrivers(context, sweepAll);
  const tending = tend(context.disks, {
    everyMs: deadlines.watchMs,
    failed: (err) => context.log('error', { err }, 'The file system of the homes could not be looked after'),
    mend: (fault) => mendHomes(context, users, fault),
  });

  const socketOf: Host['socket'] = async (computerId, { running = false, purpose = 'files' } = {}) => {
    const seen = known(computerId);
    const { socket } = computerLayout(layout, computerId);
    // A running computer stays usable during other work on it, such as a copy.
    if (isRunning(seen.run)) return socket;
    if (running) throw new HostError('COMPUTER_NOT_RUNNING', `${computerId} does not run`);
    // Take the slot before the lane, so that starts and stops do not wait for slots.
    using _place = await sandboxes[purpose].place(seen);
    return await lanes.in(computerId, async () => {
      requireHomes(context);
      const record = known(computerId);
      return isRunning(record.run) ? socket : sandboxes[purpose].open(record);
    });
  };
  const stop = (computerId: string, graceMs: number, reason: string, generation = Number.POSITIVE_INFINITY) => {
    const run = isComputerId(computerId) ? readRecord(layout, computerId)?.run : undefined;
    if (run == null || run.spec.generation > generation) return Promise.resolve();
    const work = async () => {
      const record = readRecord(layout, computerId);
      if (record?.run == null || record.run.spec.generation > generation) return;
      await end(context, record, reason, graceMs);
    };
    return lanes.in(computerId, work, new HostError('START_FAILED', 'it was stopped while it started'));
  };
  const close = async (ends = { end: false }) => {
    watching.stop();
    await tending.stop();
    awaiting.stop();
    await context.holders.close();
    await saves.endAll('the host is closing');
    await lanes.idle();
    await Promise.all(Object.values(sandboxes).map((each) => each.closeAll()));
    await context.drives?.close(ends);
    lock.release();
  };

  return {
    hostId: context.hostId,
    get drivers() {
      return context.disks.fault() === undefined ? driversOf(context) : [];
    },
    get refused() {
      const fault = context.disks.fault();
      const unusable = fault === undefined ? [] : driversOf(context).map((name) => ({ name, refused: fault }));
      return [...context.refused.values(), ...unusable].map(({ name, refused }) => ({ name, refused }));
    },
    rights: context.rights,
    limits: context.limits,
    async start(spec) {
      if (!isComputerId(spec.computerId)) throw new HostError('COMPUTER_ABSENT', 'that is no id of a computer');
      return lanes.in(spec.computerId, async (signal) => {
        requireHomes(context);
        // Programs in the work sandbox would use the home unnoticed by the started computer.
        await sandboxes.work.close(spec.computerId);
        return start(context, spec, signal);
      });
    },
    stop: (computerId, { generation, graceMs = deadlines.stopGraceMs } = {}) =>
      stop(computerId, graceMs, 'it was stopped', generation),
    pause: (computerId) => lanes.in(computerId, () => pause(context, known(computerId))),
    resume: (computerId) => lanes.in(computerId, () => resume(context, known(computerId))),
    async destroy(computerId) {
      if (!isComputerId(computerId)) return;
      const work = async () => {
        requireHomes(context);
        const record = readRecord(layout, computerId);
        await release(computerId);
        await saves.remove(computerId);
        if (record !== undefined) await destroy(context, record);
      };
      await lanes.in(computerId, work, new HostError('COMPUTER_ABSENT', `${computerId} is being removed`));
    },
    fork(from, to, signal) {
      const inSource: InSource = (work, given) => inLaneOf(lanes, from, (inLane) => work(known(from), inLane), given);
      return lanes.in(to.computerId, async (own) => {
        requireHomes(context);
        const both = signal ? AbortSignal.any([own, signal]) : own;
        await fork(context, inSource, to, both);
        await saves.share(from, to.computerId, both);
      });
    },
    get bases() {
      if ('missing' in context.systems) return [];
      return images.areOffered ? [...baseNames, 'image' as const] : baseNames;
    },
    prepareBase: (base, signal) => bases.prepare(base, signal),
    resolveImage: (image, signal) => images.resolve(image, signal),
    prepareImage: (image, signal) => images.prepare(image, signal),
    saves,
    metrics: async (computerId) => metrics(context, known(computerId)),
    inspect: async (computerId) =>
      inspect(context, isComputerId(computerId) ? readRecord(layout, computerId) : undefined),
    async list() {
      const looks = listRecords(layout).map(async (record) => {
        const hosted = await inspectForList(context, record);
        return hosted.state === 'absent' ? [] : [{ computerId: record.computerId, hosted }];
      });
      return (await Promise.all(looks)).flat();
    },
    sweep: sweepAll,
    client(computerId) {
      const { socket, processes } = computerLayout(layout, known(computerId).computerId);
      return new HostClient({ socketPath: socket, processesDir: processes });
    },
    files: async (computerId) => new HostClient({ socketPath: await socketOf(computerId) }),
    work: async (computerId) => new HostClient({ socketPath: await socketOf(computerId, { purpose: 'work' }) }),
    socket: socketOf,
    close: () => close(),
    async shutdown() {
      const running = listRecords(layout).filter(({ run }) => isRunning(run));
      await Promise.all(running.map(({ computerId }) => stop(computerId, deadlines.stopGraceMs, 'its host stopped')));
      await close({ end: true });
      context.confinement.close();
      await context.disks.close();
    },
  };
}

/** Ends everything that uses the homes, whose programs fail already, and mounts the homes anew. */
async function mendHomes(context: HostContext, { lanes, saves, sandboxes }: Users, fault: string): Promise<void> {
  const release = async () => {
    await saves.endAll('the homes are mounted anew');
    const ends = listComputerIds(context.layout).map((computerId) =>
      lanes.in(computerId, () => endUnasked(context, computerId, { reason: fault, code: 'HOST_FAILED' })),
    );
    await Promise.all([...ends, ...sandboxes.map((each) => each.closeAll())]);
    await context.holders.clear();
    await lanes.idle(); // what comes later is refused
  };
  await context.disks.mend(release).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`no home can be used: ${fault}; they cannot be mounted anew: ${why}`);
  });
  context.log('warn', { fault }, 'The homes were mounted anew and can be used again');
}
