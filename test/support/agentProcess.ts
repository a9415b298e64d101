import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent } from '../../integrations/computers/holder/agent.ts';
import type { LeaderExit, ProcessRequest } from '../../integrations/computers/protocol/agentRequests.ts';
import { type Message, MessageDecoder, messageKind } from '../../integrations/computers/protocol/messages.ts';
import { agentProgram } from './computerPrograms.ts';

/** An agent outside of a sandbox, as its holder sees it. */
export async function startAgent(cwd = '/'): Promise<{ agent: Agent; pid: number } & AsyncDisposable> {
  const child = spawn(await agentProgram(), [], { cwd, env: {}, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  const ignore = () => undefined;
  const agent = new Agent(child.stdout, child.stdin, { egressSocket: null, onReady: ignore, onEnd: ignore });
  await agent.ready;
  return {
    agent,
    pid: child.pid ?? 0,
    async [Symbol.asyncDispose]() {
      agent.end(new Error('The test has ended.'));
      await ended;
    },
  };
}

let count = 0;

/** Runs a command through an agent to its end. `messages` is what the agent said, apart from the answer. */
export async function runWith(
  agent: Agent,
  command: string | string[],
  { cwd = '/', env = {} }: Partial<Pick<ProcessRequest, 'cwd' | 'env'>> = {},
): Promise<LeaderExit & { stdout: string; stderr: string; messages: Message[] }> {
  const request = { kind: 'process', processId: `prc_${count++}`, command, cwd, env, pty: null } as const;
  const { stream } = await agent.open(
    { ...request, input: false, files: null, user: '', isMoved: false },
    { deadlineMs: 60_000 },
  );
  const decoder = new MessageDecoder();
  const messages: Message[] = [];
  for await (const chunk of stream) messages.push(...decoder.push(chunk as Buffer));
  const text = (kind: number) =>
    Buffer.concat(messages.filter((message) => message.kind === kind).map(({ payload }) => payload)).toString();
  const exit = JSON.parse(text(messageKind.exit)) as LeaderExit;
  return { ...exit, stdout: text(messageKind.stdout), stderr: text(messageKind.stderr), messages };
}
