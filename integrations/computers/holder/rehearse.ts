import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { duplexPair } from 'node:stream';
import { ProcessStore } from '../processes/processStore.ts';
import { Channel } from '../protocol/channel.ts';
import type { HolderSpec } from '../protocol/holderSpec.ts';
import { encodeMessage, messageHeader, messageKind } from '../protocol/messages.ts';
import { Agent } from './agent.ts';
import { createHolderServer } from './http/server.ts';
import { HolderProcesses } from './processes/processes.ts';
import { makeSandbox } from './sandboxes/sandbox.ts';
import { Screens } from './screens/screens.ts';
import { ScreenThread, screenProgram } from './screens/screenThread.ts';

const limits = { cpuMilli: 0, memoryMiB: 0, diskMiB: 0, maxTasks: 0, maxProcesses: 1, maxLogBytes: 1_048_576 };
const computer = { computerId: 'rehearsal', spaceId: '', generation: 0, limits, env: {} };

/**
 * Rehearses a start, so that its code is loaded and compiled before a computer needs it: makes a sandbox that ends at
 * once, starts a process without a computer over HTTP, and reads it to its end. This makes a wake a fifth faster
 * (docs/computers.md). Returns whether it succeeded. If it fails, only the first start takes longer.
 */
export async function rehearse(folder: string): Promise<boolean> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const sandbox = { file: '/bin/true', args: [], home: '/', env: {} };
    const descriptors = [{ kind: 'write', data: '' }, { kind: 'info' }, { kind: 'block' }] as const;
    await makeSandbox({ ...sandbox, descriptors: [...descriptors] }).catch(() => undefined);
    return await play(folder);
  } catch {
    return false;
  } finally {
    await rm(folder, { recursive: true, force: true }).catch(() => undefined);
  }
}

async function play(folder: string): Promise<boolean> {
  const [ours, theirs] = duplexPair();
  const ignore = () => undefined;
  const agent = new Agent(ours, ours, { egressSocket: null, onReady: ignore, onEnd: ignore });
  const other = new Channel(theirs, theirs, {
    side: 'agent',
    maxStreams: 1,
    maxOpenBytes: 65_536,
    onOpen: () => (stream) => {
      stream.write(encodeMessage(messageKind.answer, { pid: 1 }));
      stream.write(Buffer.concat([messageHeader(messageKind.stdout, 1), Buffer.from('x')]));
      stream.end(encodeMessage(messageKind.exit, { exitCode: 0, signal: null }));
      stream.resume();
    },
    onEnd: ignore,
  });
  other.open({ kind: 'ready' }).end();
  const store = new ProcessStore(`${folder}/processes`, limits);
  const screens = new Screens(store, new ScreenThread(screenProgram(process.argv[1] ?? '')));
  const spec = {
    purpose: 'computer',
    computer,
    sandbox: { home: '/', env: {} },
    settings: {},
  } as unknown as HolderSpec;
  const counted = { owner: 'user', maxProcesses: 1, oomKills: () => 0, onStarted: ignore } as const;
  const processes = new HolderProcesses({ spec, agent, store, screens, ...counted });
  const at = new Date(0).toISOString();
  const status = {
    ...computer,
    startedAt: at,
    agent: 'ready',
    runningProcesses: 0,
    isPaused: false,
    lastActiveAt: at,
  } as const;
  const server = createHolderServer({
    agent,
    users: { processes, store, screens },
    own: { processes, store, screens },
    use: () => ignore,
    status: () => status,
    hasPorts: true,
  });
  const socketPath = `${folder}/socket`;
  await once(server.listen(socketPath), 'listening');
  try {
    const start = JSON.stringify({ processId: 'rehearsal', command: ['true'] });
    await say(socketPath, `POST /processes HTTP/1.1\r\nContent-Length: ${start.length}\r\n`, start);
    await say(socketPath, 'GET /processes/rehearsal/output?after=0&follow=true HTTP/1.1\r\n');
    return (await store.info('rehearsal')).state === 'exited';
  } finally {
    server.close();
    agent.end(new Error('The rehearsal is over.'));
    await processes.close();
  }
}

async function say(socketPath: string, head: string, body = ''): Promise<void> {
  const socket = connect(socketPath);
  socket.write(`${head}Host: rehearsal\r\nConnection: close\r\n\r\n${body}`);
  socket.resume();
  await once(socket, 'close');
}
