import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { FillOptions, Host, HostOptions, StoredSave, TakenSave } from '../../integrations/computers/host/host.ts';
import { HostError, type HostErrorCode } from '../../integrations/computers/host/hostErrors.ts';
import { computerLayout, hostLayout } from '../../integrations/computers/host/layout.ts';
import { HostClient } from '../../integrations/computers/hostClient.ts';
import type { HolderEnd } from '../../integrations/computers/protocol/holderSpec.ts';
import { agentProgram, cacheDir } from '../support/computerPrograms.ts';
import { hostDir } from './host.ts';

type RemoteMethod =
  | 'start'
  | 'stop'
  | 'pause'
  | 'resume'
  | 'destroy'
  | 'fork'
  | 'metrics'
  | 'inspect'
  | 'list'
  | 'sweep'
  | 'prepareBase'
  | 'prepareImage'
  | 'resolveImage';

type SaveMethod = 'changed' | 'kept' | 'take' | 'keepOnly' | 'readTo' | 'fillFrom';

export interface HostCall {
  id: number;
  method: RemoteMethod | SaveMethod | 'close' | 'shutdown';
  args: unknown[];
}

interface Failure {
  code: string;
  message: string;
}

export type HostReply =
  | { ready: Pick<Host, 'hostId' | 'drivers' | 'rights' | 'limits'> }
  | { refused: Failure }
  | { ended: { computerId: string; end: HolderEnd } }
  | { id: number; value?: unknown; error?: Failure };

const program = fileURLToPath(new URL('../support/hostProcess.ts', import.meta.url));

/** A save in a file. With `most`, only that many of its bytes come, and then none for ever. */
export interface FiledSave extends Omit<StoredSave, 'open'> {
  file: string;
  most?: number;
}

/** The saves of a host in another process. Their bytes are in files. */
export interface RemoteSaves {
  changed(): Promise<string[]>;
  kept(computerId: string): Promise<string[]>;
  take(computerId: string, saveId: string): Promise<Omit<TakenSave, 'takenAt'>>;
  keepOnly(computerId: string, saveIds: string[]): Promise<void>;
  readTo(file: string, computerId: string, saveId: string, parentId: string | null): Promise<void>;
  fillFrom(computerId: string, chain: FiledSave[], options: Omit<FillOptions, 'signal'>): Promise<void>;
}

export interface RemoteHost extends AsyncDisposable {
  host: Host;
  saves: RemoteSaves;
  dir: string;
  /** Its folder, as this process sees it. */
  seenDir: string;
  pid: number;
  /** Computers that the host reported to have ended by themselves. */
  ended: { computerId: string; end: HolderEnd }[];
  /** Kills the host like a worker with kill -9. Its computers go on. */
  kill(): Promise<void>;
}

interface ProcessOptions extends Partial<HostOptions> {
  uid?: number;
  /** The command line that runs a command in a mount namespace that has the host's folder. */
  on?: (command: readonly string[]) => [string, ...string[]];
}

/** A host in a process of its own, optionally as another user or on a disk of its own. */
export async function startHostProcess(options: ProcessOptions = {}): Promise<RemoteHost> {
  const { uid, on, ...given } = options;
  const dir = given.dir ?? hostDir();
  if (uid !== undefined) chownSync(dir, uid, uid);
  const all = { agent: await agentProgram(), imageMiB: 2_048, cacheDir, ...given, dir };
  const own: [string, ...string[]] = [process.execPath, program, JSON.stringify(all)];
  const [command, ...args] = on?.(own) ?? own;
  const child = spawn(command, args, {
    cwd: '/',
    env: on === undefined ? {} : { PATH: process.env.PATH },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    ...(uid !== undefined && { uid, gid: uid }),
  });
  const calls = new Map<number, (reply: { value?: unknown; error?: Failure }) => void>();
  const ended: RemoteHost['ended'] = [];
  const exited = once(child, 'exit');
  const ready = await new Promise<Extract<HostReply, { ready: unknown }>['ready']>((resolve, reject) => {
    child.on('message', (reply: HostReply) => {
      if ('ready' in reply) resolve(reply.ready);
      else if ('refused' in reply) reject(new HostError(reply.refused.code as HostErrorCode, reply.refused.message));
      else if ('ended' in reply) ended.push(reply.ended);
      else calls.get(reply.id)?.(reply);
    });
    void exited.then(() => {
      reject(new Error('The process of the host has ended.'));
      for (const call of calls.values()) call({ error: { code: 'KILLED', message: 'The host was killed.' } });
    });
  });
  const call = caller(child, calls);
  const root = on === undefined ? '' : `/proc/${child.pid}/root`;
  const layout = hostLayout(dir);
  const client = (computerId: string) =>
    new HostClient({ socketPath: root + computerLayout(layout, computerId).socket });
  const methods: RemoteMethod[] = [
    'start',
    'stop',
    'pause',
    'resume',
    'destroy',
    'fork',
    'metrics',
    'inspect',
    'list',
    'sweep',
    'prepareBase',
    'prepareImage',
    'resolveImage',
  ];
  const saveMethods: SaveMethod[] = ['changed', 'kept', 'take', 'keepOnly', 'readTo', 'fillFrom'];
  const callsOf = (names: HostCall['method'][]) =>
    Object.fromEntries(names.map((method) => [method, (...args: unknown[]) => call(method, args)]));
  const host = { ...ready, ...callsOf(methods), client } as unknown as Host;
  return {
    host,
    saves: callsOf(saveMethods) as unknown as RemoteSaves,
    dir,
    seenDir: root + dir,
    pid: child.pid ?? 0,
    ended,
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      for (const { computerId } of await host.list()) await host.destroy(computerId);
      await call('shutdown', []);
      child.disconnect();
      await exited;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function caller(child: ChildProcess, calls: Map<number, (reply: { value?: unknown; error?: Failure }) => void>) {
  let count = 0;
  return (method: HostCall['method'], args: unknown[]) =>
    new Promise<never>((resolve, reject) => {
      count += 1;
      const id = count;
      calls.set(id, ({ value, error }) => {
        calls.delete(id);
        if (error === undefined) resolve(value as never);
        else reject(new HostError(error.code as HostErrorCode, error.message));
      });
      child.send({ id, method, args } satisfies HostCall, (failure) => {
        if (failure !== null) calls.get(id)?.({ error: { code: 'KILLED', message: failure.message } });
      });
    });
}
