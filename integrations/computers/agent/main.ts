import { closeSync, readdirSync, readFileSync, stat } from 'node:fs';
import { Socket } from 'node:net';
import { startupSnapshot } from 'node:v8';
import { type AgentRequest, Refusal, triedBy } from '../protocol/agentRequests.ts';
import { Channel } from '../protocol/channel.ts';
import type { ChannelStream } from '../protocol/channelStream.ts';
import { encodeMessage, messageKind } from '../protocol/messages.ts';
import { takeFileRequest } from './files/requests.ts';
import { startNetwork } from './network/network.ts';
import { dialPort, dialSocket } from './network/ports.ts';
import { Processes } from './processes/processes.ts';

/** Before the agent, a sandbox has its own first process, and a shell. */
const firstPids = 9;

// What is above here, and all that it needs, is in a startup snapshot already; so nothing there looks at the machine.
if (startupSnapshot.isBuildingSnapshot()) startupSnapshot.setDeserializeMainFunction(main);
else main();

/**
 * The agent: the first process in a sandbox, which does there what its holder asks for. It ends with its channel, and
 * with it everything in the sandbox.
 */
function main(): void {
  if (process.argv.at(-1) === triedBy) return;
  closeStrayDescriptors();
  // Ours, not that of whoever has started the sandbox.
  process.umask(0o022);
  const input = new Socket({ fd: 0, readable: true, writable: false });
  const output = new Socket({ fd: 1, readable: false, writable: true });
  const processes = new Processes();
  const channel: Channel = new Channel(input, output, {
    side: 'agent',
    // The holder is no stranger, and bounds its own requests.
    maxStreams: 100_000,
    maxOpenBytes: 4 * 1_048_576,
    onOpen: (request) => (stream) => void serve({ channel, processes }, stream, request as AgentRequest),
    onEnd: endAll,
  });
  channel.open({ kind: 'ready' }).end();
  // Node's threads for files are there before any program is: where they cannot be made, as beside a fork bomb, it aborts.
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
    const refused = error instanceof Refusal ? error.code : 'AGENT_FAILED';
    stream.end(encodeMessage(messageKind.answer, { refused }));
    stream.resume();
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
      // Its relays listen at once; what is started next finds them.
      void startNetwork({ open: () => channel.open({ kind: 'egress' }) });
      return answer(stream, {});
    case 'ping':
      return answer(stream, {});
    case 'port':
      return dialPort(request.port, stream);
    case 'socket':
      return dialSocket(request.path, stream);
    default:
      return takeFileRequest(stream, request);
  }
}

/**
 * The sandbox’s first process waits for all that are left in it, so none may be. In any other place than a sandbox of
 * its own, where it is one of the first, this would end whatever else runs on the machine.
 */
function endAll(): never {
  for (let round = 0; round < 1_000 && process.pid <= firstPids; round++) {
    try {
      // Everything in the sandbox but its first process and us.
      process.kill(-1, 'SIGKILL');
    } catch {
      break; // there is nothing else
    }
  }
  process.exit(0);
}

function answer(stream: ChannelStream, value: unknown): void {
  stream.end(encodeMessage(messageKind.answer, value));
  stream.resume();
}

/** Closes what was left open for us by chance, a descriptor of whoever started the host: what we start would have it. */
function closeStrayDescriptors(): void {
  const closesOnExec = 0o2000000;
  for (const name of readdirSync('/proc/self/fd')) {
    const fd = Number(name);
    try {
      const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];
      // Node's own are marked so.
      if (fd > 2 && flags !== undefined && (Number.parseInt(flags, 8) & closesOnExec) === 0) closeSync(fd);
    } catch {
      // It is closed.
    }
  }
}
