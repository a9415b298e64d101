import type { ComputerSpec } from '../types.ts';
import type { HostContext } from './context.ts';
import { within } from './deadline.ts';
import { clear } from './end.ts';
import { endFirst } from './endFirst.ts';
import { HostError } from './hostErrors.ts';
import { computerLayout } from './layout.ts';
import type { ComputerRecord, ComputerRun } from './records.ts';
import { bootId, isAlive, stampOf } from './stamps.ts';
import { holderSpec, reported, required } from './start.ts';

/** It reads and writes files for somebody who waits, and nothing else. */
const limits = { cpuMilli: 1_000, memoryMiB: 256, maxTasks: 16, maxProcesses: 1 };
const suffix = '.files';

/**
 * Short-lived sandboxes on the homes of computers that do not run: the same agent reads and writes, inside, so that no
 * link leads out. They end by themselves when nobody uses them; those of a killed process are ended by the sweep.
 */
export class FileSandboxes {
  readonly #context: HostContext;
  readonly #open = new Map<string, ComputerRecord>();

  constructor(context: HostContext) {
    this.#context = context;
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
    await clear(this.#context, record);
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
    const { confinement, layout } = this.#context;
    const cgroups = confinement.prepare(record);
    run.holder = required(stampOf(holder.pid), 'its holder');
    confinement.joinHolder(record.computerId, holder.pid);
    const { filesSocket, filesEnd } = computerLayout(layout, computerId);
    holder.send({
      ...holderSpec(this.#context, { ...record, computerId }, run.spec, cgroups),
      purpose: 'files',
      socketPath: filesSocket,
      endFile: filesEnd,
      egressSocket: null,
    });
    const { pids } = await reported(holder, 'blocked');
    const monitor = required(stampOf(pids.monitor), 'its sandbox');
    const init = required(stampOf(pids.init), 'its sandbox');
    run.sandbox = { monitor, init };
    confinement.joinSandbox(record.computerId, [pids.monitor, pids.init]);
    endFirst([pids.monitor, pids.init]);
    holder.send({ type: 'release' });
    await reported(holder, 'running');
    confinement.settleHolder(record);
  }
}
