import { once } from 'node:events';
import { chmodSync, existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { orAfter } from '../../../base/async.ts';
import { readOomKills, readPids, WorkSettler } from '../host/confinement/settleWork.ts';
import { roomForLogs } from '../processes/logRoom.ts';
import { ownLimits, ownProcessesDir, ProcessStore } from '../processes/processStore.ts';
import { ChannelViolation } from '../protocol/frames.ts';
import type {
  HolderEnd,
  HolderOrder,
  HolderReport,
  HolderSpec,
  ReleaseOrder,
  SandboxCommand,
} from '../protocol/holderSpec.ts';
import { Agent } from './agent.ts';
import { driveRefreshed, driveSynced } from './driveSync.ts';
import { createHolderServer } from './http/server.ts';
import { HolderProcesses } from './processes/processes.ts';
import { Cells } from './sandboxes/cells.ts';
import { attachContainer } from './sandboxes/container.ts';
import { MachineView } from './sandboxes/machineView.ts';
import { type BegunSandbox, makeSandbox, type Sandbox } from './sandboxes/sandbox.ts';
import { beginSystem } from './sandboxes/system.ts';
import { Screens } from './screens/screens.ts';
import { ScreenThread, screenProgram } from './screens/screenThread.ts';

/** Time limit for writing the ends of processes when a computer ends. */
const closeDeadlineMs = 10_000;
const hostEnded = 'The host has ended before the computer ran.';

interface Starter {
  report: (message: HolderReport) => Promise<void>;
  /** The host's next order. Undefined if the host is gone. */
  ordered: <T extends HolderOrder['type']>(type: T) => Promise<Extract<HolderOrder, { type: T }> | undefined>;
}

/** Makes a sandbox and holds it until it ends. Returns the exit code. */
export async function holdComputer(spec: HolderSpec, { report, ordered }: Starter): Promise<number> {
  const { become, computer } = spec;
  const writeEnd = (reason: string) => {
    try {
      replaceEnd(spec.endFile, { generation: computer.generation, reason, at: new Date().toISOString() });
    } catch (error) {
      process.stderr.write(`${computer.computerId}: ${reason} ${String(error)}\n`);
    }
  };
  let sandbox: Sandbox;
  try {
    const container = 'kind' in spec.sandbox ? await attachContainer(spec.sandbox) : undefined;
    const begun = await beginAsRoot(spec);
    if (become !== null) becomeUser(become);
    process.umask(0o077);
    reserveEnd(spec.endFile);
    if (!('kind' in spec.sandbox) && spec.sandbox.view !== undefined)
      MachineView.begin({ folder: spec.sandbox.view, limits: computer.limits });
    sandbox = container ?? (await makeSandbox(spec.sandbox as SandboxCommand, begun));
  } catch (error) {
    const reason = messageOf(error);
    writeEnd(reason);
    await report({ type: 'failed', reason });
    return 1;
  }
  const fail = async (reason: string) => {
    sandbox.kill();
    await sandbox.ended;
    writeEnd(reason);
    await report({ type: 'failed', reason });
    return 1;
  };
  await report({ type: 'blocked', pids: sandbox.pids });
  const order = await ordered('release');
  if (order === undefined) return fail(hostEnded);
  const reason = await hold(spec, sandbox, { report, ordered }, order).catch((error: unknown) => ({
    failed: messageOf(error),
  }));
  if (typeof reason !== 'string') return fail(reason.failed);
  writeEnd(reason);
  return 0;
}

/** Begins a sandbox whose beginning needs root. */
async function beginAsRoot({ sandbox, become }: HolderSpec): Promise<BegunSandbox | undefined> {
  if ('kind' in sandbox || sandbox.system === undefined) return undefined;
  if (become === null) throw new Error('only root can make a sandbox with a root file system of its own');
  return beginSystem(sandbox, sandbox.system, become);
}

/** Holds a sandbox from its release to its end. Returns why it has ended. */
async function hold(
  spec: HolderSpec,
  sandbox: Sandbox,
  { report, ordered }: Starter,
  order: ReleaseOrder,
): Promise<string> {
  const { computer, cgroups, socketPath, driveSocket, settings } = spec;
  const settle = cgroups?.settle;
  const workOom = cgroups?.workOom ?? order.workOom;
  const startedAt = new Date().toISOString();
  const reasons: string[] = [];
  const end = (reason: string) => {
    reasons.push(reason);
    sandbox.kill();
  };
  let own: ReadonlySet<number> = new Set();
  const agent = new Agent(sandbox.output, sandbox.input, {
    egressSocket: spec.egressSocket,
    onReady: () => {
      clearTimeout(slow);
      if (settle != null) own = new Set(readPids(settle.agentProcs));
    },
    // A closed channel does not say why it was closed. The end of the sandbox does.
    onEnd: (error) => (error instanceof ChannelViolation ? end(error.message) : sandbox.kill()),
  });
  const slow = setTimeout(() => end('The computer’s agent did not start in time.'), settings.agentStartTimeoutMs);
  const settler = settle == null ? undefined : new WorkSettler(settle, () => own);
  const { limits } = computer;
  const store = new ProcessStore(spec.processesDir, { ...limits, maxDiskBytes: roomForLogs(limits) });
  const common = {
    spec,
    agent,
    oomKills: () => (workOom === undefined ? 0 : readOomKills(workOom)),
    onStarted: () => settler?.settle(),
    beforeStart: driveSocket === null ? undefined : () => driveRefreshed(driveSocket),
    beforeEnd: driveSocket === null ? undefined : () => driveSynced(driveSocket),
  };
  const thread = new ScreenThread(screenProgram(process.argv[1] ?? ''));
  const users = { store, screens: new Screens(store, thread) };
  const cells = cellsOf(spec, sandbox);
  const { maxProcesses: most } = limits;
  const processes = new HolderProcesses({ ...common, ...users, cells, owner: 'user', maxProcesses: most });
  const ownStore = new ProcessStore(ownProcessesDir(spec.processesDir), ownLimits);
  const owns = { store: ownStore, screens: new Screens(ownStore, thread) };
  const { maxProcesses, maxLooks } = ownLimits;
  const work = new HolderProcesses({ ...common, ...owns, owner: 'atrium', maxProcesses, maxLooks });
  // Atrium's own processes do not keep a computer awake.
  const usage = new Usage(() => processes.running > 0 || (spec.purpose === 'work' && work.running > 0));
  const view = viewOf(spec, workOom, () => processes.running + work.running > 0);
  const server = createHolderServer({
    agent,
    users: { ...users, processes },
    own: { ...owns, processes: work },
    hasPorts: spec.purpose === 'computer',
    // Reads do not keep a computer awake. A short-lived sandbox exists to be read, so there they count.
    use: ({ method, isOwn }) =>
      (method === 'GET' || isOwn) && spec.purpose === 'computer' ? () => undefined : usage.begin(),
    status: () => ({
      computerId: computer.computerId,
      generation: computer.generation,
      startedAt,
      agent: agent.isReady ? 'ready' : 'starting',
      runningProcesses: processes.running,
      isPaused: processes.isPaused,
      lastActiveAt: usage.lastActiveAt,
    }),
  });
  sandbox.release();
  if ((await ordered('open')) === undefined) throw new Error(hostEnded);
  agent.openNetwork();
  await listen(server, socketPath);
  const idle =
    spec.purpose !== 'computer' ? usage.whenIdle(settings.idleTimeoutMs, () => end('It was not used.')) : undefined;
  process.once('SIGTERM', () => {
    const stopping = [processes, work].map((each) => each.stop(settings.stopGraceMs));
    void Promise.all(stopping).finally(() => end('It was stopped.'));
  });
  await report({ type: 'running', startedAt });
  // Remove what an earlier holder should have pruned.
  if (spec.purpose === 'computer') for (const each of [store, ownStore]) void each.prune().catch(() => undefined);
  const how = await sandbox.ended;
  cells?.end();
  view?.end();
  clearTimeout(slow);
  clearInterval(idle);
  agent.end(new Error(how));
  // Readers get the end from the disk before they are cut.
  const closing = [processes.close().then(() => store.prune()), work.close().then(() => ownStore.prune())];
  await orAfter(Promise.all(closing), closeDeadlineMs, undefined);
  rmSync(socketPath, { force: true });
  server.close();
  await orAfter(once(server, 'close'), 1_000, undefined);
  // In a `whole` sandbox the kernel kills everything, so no single process reports the lack of memory.
  const ranOut = settle === null && workOom !== undefined && readOomKills(workOom) > 0;
  return reasons[0] ?? (ranOut ? 'It took more memory than its limit.' : how);
}

/** Room for a `HolderEnd` as JSON. */
const endBytes = 1_024;

/** Reserves room for the file that says why a holder has ended, because the disk may be full at the end. */
function reserveEnd(file: string): void {
  try {
    writeFileSync(`${file}.new`, ' '.repeat(endBytes));
  } catch {
    // The disk is full now. There may be room at the end.
  }
}

function replaceEnd(file: string, end: HolderEnd): void {
  const text = JSON.stringify({ ...end, reason: end.reason.slice(0, 500) });
  // White space around JSON is valid, so the text is written over the reserved bytes.
  writeFileSync(`${file}.new`, text.padEnd(endBytes), { flag: existsSync(`${file}.new`) ? 'r+' : 'w' });
  renameSync(`${file}.new`, file);
}

function viewOf({ sandbox, computer }: HolderSpec, workOom: string | undefined, isBusy: () => boolean) {
  if ('kind' in sandbox || sandbox.view === undefined) return undefined;
  return new MachineView({ folder: sandbox.view, limits: computer.limits, workOom, isBusy });
}

function cellsOf({ sandbox: made, cgroups, settings }: HolderSpec, { pids }: Sandbox): Cells | undefined {
  if (pids === null || 'kind' in made || made.cell === undefined) return undefined;
  const workProcs = cgroups?.settle?.workProcs ?? [];
  return new Cells({ command: made.cell, init: pids.init, workProcs, startTimeoutMs: settings.agentStartTimeoutMs });
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Whether the computer is in use, and when that was last. */
class Usage {
  readonly #isBusy: () => boolean;
  #uses = 0;
  #last = Date.now();

  constructor(isBusy: () => boolean) {
    this.#isBusy = isBusy;
  }

  get lastActiveAt(): string {
    if (this.#uses > 0 || this.#isBusy()) this.#last = Date.now();
    return new Date(this.#last).toISOString();
  }

  readonly begin = (): (() => void) => {
    this.#uses++;
    return () => {
      this.#uses--;
      this.#last = Date.now();
    };
  };

  whenIdle(idleMs: number, then: () => void): NodeJS.Timeout {
    return setInterval(
      () => {
        if (Date.now() - Date.parse(this.lastActiveAt) >= idleMs) then();
      },
      Math.max(50, idleMs / 10),
    );
  }
}

async function listen(server: Server, socketPath: string): Promise<void> {
  // A killed holder leaves its socket behind.
  rmSync(socketPath, { force: true });
  server.listen(socketPath);
  await once(server, 'listening');
  chmodSync(socketPath, 0o600);
}

function becomeUser({ uid, gid }: { uid: number; gid: number }): void {
  process.setgroups?.([]);
  process.setgid?.(gid);
  process.setuid?.(uid);
}
