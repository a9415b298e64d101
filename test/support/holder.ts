import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { HostClient, type OutputRequest } from '../../integrations/computers/hostClient.ts';
import { type Exit, noteOf } from '../../integrations/computers/processes/records.ts';
import { prepareAgent } from '../../integrations/computers/programs/prepare.ts';
import {
  agentFolder,
  type HolderEnd,
  type HolderReport,
  type HolderSpec,
} from '../../integrations/computers/protocol/holderSpec.ts';
import type { ComputerLimits, OutputRecord } from '../../integrations/computers/types.ts';
import { agentProgram, nodeInside } from './computerPrograms.ts';

const program = fileURLToPath(new URL('../../integrations/computers/holder/main.ts', import.meta.url));

export const testLimits: ComputerLimits = {
  cpuMilli: 1_000,
  memoryMiB: 512,
  diskMiB: 512,
  maxTasks: 256,
  maxProcesses: 20,
  maxLogBytes: 16 * 1_048_576,
};

const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/home/user', LANG: 'C.UTF-8' };

export interface HeldComputer {
  client: HostClient;
  spec: HolderSpec;
  /** The holder's process id. */
  pid: number;
  initPid: number;
  ended: Promise<unknown>;
  end(): HolderEnd | undefined;
  /** Kills the computer and removes its folder. */
  stop(): Promise<void>;
}

/** The agent's folder and command line, for the computers of a test file. */
export async function agentIn(folder: string): Promise<{ agentDir: string; command: string[] }> {
  const agentDir = `${folder}/agent`;
  return { agentDir, command: await prepareAgent(agentDir, await agentProgram()) };
}

/** Starts a holder. `report` reads its next message. */
export function startHolder(): { child: ChildProcess; send(message: unknown): void; report(): Promise<HolderReport> } {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program], {
    cwd: '/',
    env: {},
    detached: true,
    stdio: ['pipe', 'inherit', 'inherit', 'pipe'],
  });
  const lines = createInterface({ input: child.stdio[3] as Readable })[Symbol.asyncIterator]();
  return {
    child,
    send: (message) => (child.stdin as Writable).write(`${JSON.stringify(message)}\n`),
    async report() {
      const { value, done } = await lines.next();
      return done === true ? { type: 'failed', reason: 'the holder has ended' } : (JSON.parse(value) as HolderReport);
    },
  };
}

/** A computer in a plain bubblewrap sandbox, to test its holder and its agent. */
export async function heldComputer(
  { agentDir, command }: { agentDir: string; command: string[] },
  changes: Partial<Pick<HolderSpec, 'purpose' | 'egressSocket' | 'settings' | 'cgroups'>> & {
    limits?: Partial<ComputerLimits>;
  } = {},
): Promise<HeldComputer> {
  const { limits, ...others } = changes;
  const folder = mkdtempSync(join(tmpdir(), 'atrium-computer-'));
  const home = `${folder}/home`;
  for (const path of [home, `${folder}/run`]) mkdirSync(path, { recursive: true });
  const spec: HolderSpec = {
    computer: {
      computerId: `cmp_${randomUUID()}`,
      spaceId: 'spc_1',
      generation: 1,
      limits: { ...testLimits, ...limits },
      env: {},
    },
    purpose: 'computer',
    become: null,
    socketPath: `${folder}/run/holder.sock`,
    processesDir: `${folder}/processes`,
    endFile: `${folder}/run/end.json`,
    sandbox: sandboxOf(home, agentDir, command),
    cgroups: null,
    egressSocket: null,
    driveSocket: null,
    settings: { stopGraceMs: 5_000, agentStartTimeoutMs: 60_000, idleTimeoutMs: 60_000 },
    ...others,
  };
  const { child, send, report } = startHolder();
  const ended = once(child, 'exit');
  send(spec);
  const blocked = await report();
  if (blocked.type !== 'blocked') throw new Error(JSON.stringify(blocked));
  send({ type: 'release' });
  send({ type: 'open' });
  const running = await report();
  if (running.type !== 'running') throw new Error(JSON.stringify(running));
  const init = blocked.pids?.init ?? 0;
  return {
    client: new HostClient({ socketPath: spec.socketPath }),
    spec,
    pid: child.pid as number,
    initPid: init,
    ended,
    end: () => (existsSync(spec.endFile) ? (JSON.parse(readFileSync(spec.endFile, 'utf8')) as HolderEnd) : undefined),
    async stop() {
      try {
        process.kill(init, 'SIGKILL');
      } catch {
        // It has already ended.
      }
      if (child.exitCode === null && child.signalCode === null) await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function sandboxOf(home: string, agentDir: string, command: string[]): HolderSpec['sandbox'] {
  const { from, to } = nodeInside;
  const readOnly = [
    ['/usr', '/usr'],
    [agentDir, agentFolder],
    [from, to],
  ].flatMap((each) => ['--ro-bind', ...each]);
  const bound = [...readOnly, '--bind', home, '/home/user'];
  const links = ['bin', 'lib', 'lib64', 'sbin'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]);
  const namespaces = ['user', 'pid', 'net', 'ipc', 'uts'].map((name) => `--unshare-${name}`);
  const own = [
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    '--tmpfs',
    '/tmp',
    '--chdir',
    '/home/user',
    '--uid',
    '1000',
    '--gid',
    '1000',
  ];
  const args = [
    ...namespaces,
    '--new-session',
    ...bound,
    ...links,
    ...own,
    '--info-fd',
    '3',
    '--block-fd',
    '4',
    '--',
    ...command,
  ];
  const descriptors = [{ kind: 'info' }, { kind: 'block' }] as const;
  return { file: 'bwrap', args, descriptors: [...descriptors], home: '/home/user', env: environment };
}

/** The whole output of a process, once it has ended. */
export async function outputOf(client: HostClient, processId: string, request: OutputRequest = {}) {
  const records: OutputRecord[] = [];
  for await (const record of client.output(processId, { follow: true, ...request })) records.push(record);
  return outputIn(records);
}

export function outputIn(records: OutputRecord[]) {
  const text = (kind: string) =>
    Buffer.concat(records.filter((record) => record.kind === kind).map(({ payload }) => payload)).toString();
  const exit = records.find(({ kind }) => kind === 'exit');
  return {
    stdout: text('stdout'),
    stderr: text('stderr'),
    pty: text('pty'),
    kinds: records.map(({ kind }) => kind),
    exit: exit && noteOf<Exit>(exit),
  };
}
