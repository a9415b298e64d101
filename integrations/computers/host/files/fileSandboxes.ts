import { join } from 'node:path';
import { DomainError } from '../../../../base/errors.ts';
import { HostClient } from '../../hostClient.ts';
import { isAlive, stampOf } from '../../system/stamps.ts';
import type { ComputerSpec } from '../../types.ts';
import { driverOf, type HostContext, usualDriver } from '../context.ts';
import { isOverLimit } from '../disks/overLimit.ts';
import { HostError, within } from '../hostErrors.ts';
import type { Lanes } from '../lanes.ts';
import { computerLayout } from '../layout.ts';
import { takeDown } from '../life/end.ts';
import { holderSpec, joinSandbox, newRun, reported, required } from '../life/start.ts';
import { giveFolder } from '../machine/setUp.ts';
import type { ComputerRecord, ComputerRun } from '../records.ts';
import { FilePlaces } from './filePlaces.ts';

/** The purpose of a short-lived sandbox. */
export type SandboxWork = 'files' | 'work';

/** `files` reads and writes files for a waiting caller. `work` also runs Atrium's own programs, such as git. */
const limitsOf = {
  files: { cpuMilli: 1_000, memoryMiB: 256, maxTasks: 16, maxProcesses: 1 },
  work: { cpuMilli: 1_000, memoryMiB: 1_024, maxTasks: 128, maxProcesses: 8 },
} as const;
/** There may be fewer that run code, because they use more memory. */
const usualPlaces = {
  files: { perHost: 8, perSpace: 3, waitMs: 5_000, restMs: 1_000 },
  work: { perHost: 4, perSpace: 2, waitMs: 15_000, restMs: 1_000 },
};
const lookMs = 1_000;

/**
 * Short-lived sandboxes on the homes of stopped computers. The usual agent reads and writes inside them, so no link
 * leads out. An unused sandbox ends. The sweep ends sandboxes that a killed process left.
 */
export class FileSandboxes {
  readonly #context: HostContext;
  readonly #purpose: SandboxWork;
  readonly #suffix: string;
  readonly #lanes: Lanes;
  readonly #restMs: number;
  readonly #open = new Map<string, ComputerRecord>();
  readonly #places: FilePlaces;

  constructor(context: HostContext, lanes: Lanes, purpose: SandboxWork) {
    this.#context = context;
    this.#purpose = purpose;
    this.#suffix = `.${purpose}`;
    this.#lanes = lanes;
    const limits = { ...usualPlaces[purpose], ...context.options[purpose] };
    this.#restMs = limits.restMs;
    this.#places = new FilePlaces(limits, (computerIds) => this.#endRested(computerIds));
  }

  /** Takes one of the few slots. Throws 429 or 503 `FILES_BUSY`. */
  place({ computerId, spaceId, run }: ComputerRecord): Promise<Disposable> {
    return this.#places.take(computerId, run?.spec.spaceId ?? spaceId ?? '');
  }

  /**
   * The socket of the sandbox's holder. Starts the holder if there is none. Callers make one call at a time for each
   * computer. Throws 422 `DISK_FULL` if a program would run in a home that is larger than its limit.
   */
  async open(record: ComputerRecord): Promise<string> {
    const { socket } = this.#paths(record.computerId);
    const holder = this.#open.get(record.computerId)?.run?.holder;
    if (holder != null && isAlive(holder)) return socket;
    if (this.#purpose === 'work' && (await isOverLimit(this.#context, record.computerId))) {
      const detail = 'The files of the computer are larger than its limit. Wake it, and remove some of them at once.';
      throw new DomainError('unprocessable', 'DISK_FULL', detail);
    }
    await this.#start(record);
    return socket;
  }

  async close(computerId: string): Promise<void> {
    const record = this.#open.get(computerId);
    if (record === undefined) return;
    this.#open.delete(computerId);
    try {
      await takeDown(this.#context, record);
    } finally {
      this.#places.closed(computerId);
    }
  }

  /** Ends the unused sandbox that was used longest ago. */
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

  /** How many ms the sandbox has been unused. Not positive while it is in use: it then answers with a later time. */
  async #restedMs(computerId: string): Promise<number> {
    const { socket } = this.#paths(computerId);
    const askedAt = Date.now();
    try {
      const asked = new HostClient({ socketPath: socket }).status();
      return askedAt - Date.parse((await within(asked, lookMs, 'its holder’s answer')).lastActiveAt);
    } catch {
      return 0; // the sandbox is starting or ending
    }
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((computerId) => this.close(computerId)));
  }

  /** The ids of computers with an open sandbox. */
  get openIds(): string[] {
    return [...this.#open.keys()];
  }

  /** Takes the computer's id or the sandbox's name in the confinement. */
  has(name: string): boolean {
    return this.#open.has(name.endsWith(this.#suffix) ? name.slice(0, -this.#suffix.length) : name);
  }

  #paths(computerId: string): { socket: string; end: string } {
    const { run } = computerLayout(this.#context.layout, computerId);
    return { socket: join(run, `${this.#purpose}.sock`), end: join(run, `${this.#purpose}-end.json`) };
  }

  async #start({ computerId, uid, base, limits: own }: ComputerRecord): Promise<void> {
    await this.close(computerId);
    const context = this.#context;
    const limits = limitsOf[this.#purpose];
    const ofNobody = { spaceId: '', generation: 0, env: {}, ...usualDriver(context) };
    const spec: ComputerSpec = { computerId, limits: { ...own, ...limits }, ...ofNobody };
    const run = newRun(spec);
    const name = `${computerId}${this.#suffix}`;
    const record: ComputerRecord = { computerId: name, uid, ...(base && { base }), limits: spec.limits, run };
    // Only starts make this folder. After a restore, or if the machine emptied it, there was none yet.
    giveFolder(computerLayout(context.layout, computerId).run, uid);
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
    const driver = driverOf(this.#context, record);
    const { confinement } = driver;
    const cgroups = confinement.prepare(record);
    const pid = await holder.pid;
    run.holder = required(stampOf(pid), 'its holder');
    confinement.joinHolder(record.computerId, pid);
    const { socket, end } = this.#paths(computerId);
    const spec = await holderSpec(this.#context, record, run.spec, cgroups);
    holder.send({
      ...spec,
      settings: { ...spec.settings, longestMs: this.#context.deadlines.workMs },
      purpose: this.#purpose,
      socketPath: socket,
      endFile: end,
      egressSocket: null,
    });
    const { pids } = await reported(holder, 'blocked');
    run.sandbox = joinSandbox(driver, record, pids);
    holder.send({ type: 'release', ...(await driver.beforeRelease?.(record)) });
    holder.send({ type: 'open' }); // no program in it needs a network
    await reported(holder, 'running');
    confinement.settleHolder(record);
  }
}
