import { HostClient } from '../hostClient.ts';
import type { ComputerSpec } from '../types.ts';
import { driverOf, type HostContext } from './context.ts';
import { within } from './deadline.ts';
import { clear } from './end.ts';
import { FilePlaces, usualFileLimits } from './filePlaces.ts';
import { HostError } from './hostErrors.ts';
import type { Lanes } from './lanes.ts';
import { computerLayout } from './layout.ts';
import type { ComputerRecord, ComputerRun } from './records.ts';
import { bootId, isAlive, stampOf } from './stamps.ts';
import { holderSpec, joinSandbox, reported, required } from './start.ts';

/** It reads and writes files for somebody who waits, and nothing else. */
const limits = { cpuMilli: 1_000, memoryMiB: 256, maxTasks: 16, maxProcesses: 1 };
const suffix = '.files';
const lookMs = 1_000;

/**
 * Short-lived sandboxes on the homes of computers that do not run: the same agent reads and writes, inside, so that no
 * link leads out. They end by themselves when nobody uses them; those of a killed process are ended by the sweep.
 */
export class FileSandboxes {
  readonly #context: HostContext;
  readonly #lanes: Lanes;
  readonly #restMs: number;
  readonly #open = new Map<string, ComputerRecord>();
  readonly #places: FilePlaces;

  constructor(context: HostContext, lanes: Lanes) {
    this.#context = context;
    this.#lanes = lanes;
    const limits = { ...usualFileLimits, ...context.options.files };
    this.#restMs = limits.restMs;
    this.#places = new FilePlaces(limits, (computerIds) => this.#endRested(computerIds));
  }

  /** A place for it among the few that there are. Throws 429 or 503 `FILES_BUSY`. */
  place({ computerId, spaceId, run }: ComputerRecord): Promise<Disposable> {
    return this.#places.take(computerId, run?.spec.spaceId ?? spaceId ?? '');
  }

  /** The socket of its holder, which is started where there is none. One call at a time for each computer. */
  async open(record: ComputerRecord): Promise<string> {
    const { filesSocket } = computerLayout(this.#context.layout, record.computerId);
    const holder = this.#open.get(record.computerId)?.run?.holder;
    if (holder == null || !isAlive(holder)) await this.#start(record);
    return filesSocket;
  }

  async close(computerId: string): Promise<void> {
    const record = this.#open.get(computerId);
    if (record === undefined) return;
    this.#open.delete(computerId);
    try {
      await clear(this.#context, record);
    } finally {
      this.#places.closed(computerId);
    }
  }

  /** Of those that nobody uses, ends the one that was used longest ago. */
  async #endRested(computerIds: readonly string[]): Promise<boolean> {
    const looks = computerIds.map(async (computerId) => ({ computerId, forMs: await this.#restedMs(computerId) }));
    const [longest] = (await Promise.all(looks)).sort((one, other) => other.forMs - one.forMs);
    if (longest === undefined || !this.#isRested(longest.forMs)) return false;
    const { computerId } = longest;
    return this.#lanes.in(computerId, async () => {
      if (!this.#isRested(await this.#restedMs(computerId))) return false;
      await this.close(computerId);
      return true;
    });
  }

  #isRested(forMs: number): boolean {
    return forMs > 0 && forMs >= this.#restMs;
  }

  /** How long it has not been used; of one that is in use, it says a time after we have asked. */
  async #restedMs(computerId: string): Promise<number> {
    const { filesSocket } = computerLayout(this.#context.layout, computerId);
    const askedAt = Date.now();
    try {
      const asked = new HostClient({ socketPath: filesSocket }).status();
      return askedAt - Date.parse((await within(asked, lookMs, 'its holder’s answer')).lastActiveAt);
    } catch {
      return 0; // it begins or ends
    }
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((computerId) => this.close(computerId)));
  }

  /** By the computer’s id, or by the name of the confinement. */
  has(name: string): boolean {
    return this.#open.has(name.endsWith(suffix) ? name.slice(0, -suffix.length) : name);
  }

  async #start({ computerId, uid, limits: own }: ComputerRecord): Promise<void> {
    await this.close(computerId);
    const context = this.#context;
    const spec: ComputerSpec = { computerId, spaceId: '', generation: 0, limits: { ...own, ...limits }, env: {} };
    const nothing = { holder: null, sandbox: null, startedAt: null, pausedAt: null, end: null };
    const run: ComputerRun = { spec, phase: 'starting', bootId: bootId(), ...nothing };
    const record: ComputerRecord = { computerId: `${computerId}${suffix}`, uid, limits: spec.limits, run };
    const holder = context.holders.take();
    this.#open.set(computerId, record);
    this.#places.opened(computerId);
    try {
      await within(this.#launch(computerId, record, run, holder), context.deadlines.startMs, 'looking at its files');
    } catch (error) {
      holder.kill();
      await this.close(computerId);
      if (error instanceof HostError) throw error;
      throw new HostError('START_FAILED', error instanceof Error ? error.message : String(error));
    } finally {
      holder.letGo();
    }
    void holder.ended.then(async () => {
      if (this.#open.get(computerId) === record) await this.close(computerId);
    });
  }

  async #launch(
    computerId: string,
    record: ComputerRecord,
    run: ComputerRun,
    holder: ReturnType<HostContext['holders']['take']>,
  ): Promise<void> {
    const { layout } = this.#context;
    const driver = driverOf(this.#context, record);
    const { confinement } = driver;
    const cgroups = confinement.prepare(record);
    run.holder = required(stampOf(holder.pid), 'its holder');
    confinement.joinHolder(record.computerId, holder.pid);
    const { filesSocket, filesEnd } = computerLayout(layout, computerId);
    holder.send({
      ...(await holderSpec(this.#context, record, run.spec, cgroups)),
      purpose: 'files',
      socketPath: filesSocket,
      endFile: filesEnd,
      egressSocket: null,
    });
    const { pids } = await reported(holder, 'blocked');
    run.sandbox = joinSandbox(driver, record, pids);
    holder.send({ type: 'release', ...(await driver.beforeRelease?.(record)) });
    await reported(holder, 'running');
    confinement.settleHolder(record);
  }
}
