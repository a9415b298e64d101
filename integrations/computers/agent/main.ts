import { closeSync, readdirSync, readFileSync, stat } from 'node:fs';
import { Socket } from 'node:net';
import { type AgentRequest, Refusal } from '../protocol/agentRequests.ts';
import { Channel } from '../protocol/channel.ts';
import type { ChannelStream } from '../protocol/channelStream.ts';
import { encodeMessage, messageKind } from '../protocol/messages.ts';
import { takeFileRequest } from './files/requests.ts';
import { startNetwork } from './network/network.ts';
import { dialInside } from './network/ports.ts';
import { Processes } from './processes/processes.ts';

/** The largest pid that the agent can have in a sandbox: only the first process and a shell start before it. */
const firstPids = 9;

main();

/**
 * The agent: the first process in a sandbox, which carries out its holder's requests there. It ends when its channel
 * ends, and everything else in the sandbox ends with it.
 */
function main(): void {
  closeStrayDescriptors();
  // Set our own mask instead of inheriting the one of the process that started the sandbox.
  process.umask(0o022);
  const input = new Socket({ fd: 0, readable: true, writable: false });
  const output = new Socket({ fd: 1, readable: false, writable: true });
  const processes = new Processes();
  const channel: Channel = new Channel(input, output, {
    side: 'agent',
    // We trust the holder, and it bounds its own requests.
    maxStreams: 100_000,
    maxOpenBytes: 8 * 1_048_576,
    onOpen: (request) => (stream) => void serve({ channel, processes }, stream, request as AgentRequest),
    onEnd: endAll,
  });
  channel.open({ kind: 'ready' }).end();
  // Make Node start its file threads before any program runs. Node aborts if it cannot make them, for example beside a
  // fork bomb.
  stat('/', () => undefined);
}

interface Agent {
  channel: Channel;
  processes: Processes;
}

async function serve(agent: Agent, stream: ChannelStream, request: AgentRequest): Promise<void> {
  try {
    await take(agent, stream, request);
  } catch (error) {
    answer(stream, { refused: error instanceof Refusal ? error.code : 'AGENT_FAILED' });
  }
}

async function take({ channel, processes }: Agent, stream: ChannelStream, request: AgentRequest): Promise<void> {
  switch (request.kind) {
    case 'process':
      return processes.start(request, stream);
    case 'signal':
      return answer(stream, { signalled: await processes.signal(request.processId, request.signal) });
    case 'resize':
      processes.resize(request.processId, request.cols, request.rows);
      return answer(stream, {});
    case 'network':
      // The relays listen synchronously, so the next process that starts finds them.
      void startNetwork({ open: () => channel.open({ kind: 'egress' }) });
      return answer(stream, {});
    case 'ping':
      return answer(stream, {});
    case 'port':
    case 'socket':
      return dialInside(request, stream);
    default:
      return takeFileRequest(stream, request);
  }
}

/**
 * Kills every process in the sandbox, because its first process waits for all of them to end. Does so only if the agent
 * is one of the sandbox's first processes: elsewhere `kill(-1)` would end everything on the machine.
 */
function endAll(): never {
  for (let round = 0; round < 1_000 && process.pid <= firstPids; round++) {
    try {
      process.kill(-1, 'SIGKILL');
    } catch {
      break; // nothing else runs
    }
  }
  process.exit(0);
}

function answer(stream: ChannelStream, value: unknown): void {
  stream.end(encodeMessage(messageKind.answer, value));
  stream.resume();
}

/**
 * Closes inherited descriptors, for example of the process that started the host. Programs that we start would inherit
 * them too.
 */
function closeStrayDescriptors(): void {
  const closesOnExec = 0o2000000;
  for (const name of readdirSync('/proc/self/fd')) {
    const fd = Number(name);
    try {
      const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];
      // Node opens its own descriptors with close-on-exec.
      if (fd > 2 && flags !== undefined && (Number.parseInt(flags, 8) & closesOnExec) === 0) closeSync(fd);
    } catch {
      // It has been closed meanwhile.
    }
  }
}
