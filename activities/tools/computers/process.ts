import { lookUntil } from '../../../base/async.ts';
import { DomainError } from '../../../base/errors.ts';
import { firstOf } from '../../../base/text.ts';
import type { HostClient, OutputRequest } from '../../../integrations/computers/hostClient.ts';
import { collectOutput } from '../../../integrations/computers/output/collectOutput.ts';
import { maskedOutput } from '../../../integrations/computers/output/maskedOutput.ts';
import type { OutputRecord } from '../../../integrations/computers/types.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { objectSchema, type ServerTool, serverTool } from '../tool.ts';
import { describeExit, maxCommandLength } from './exec.ts';
import {
  asIs,
  awake,
  type ComputerInput,
  type ComputerToolDeps,
  computerOfCall,
  computerProperty,
  pathProperty,
  signatureFor,
  unpaused,
} from './place.ts';

const longestWaitSeconds = 60;
/** The most text that a model reads at once. */
const maxReadBytes = 48_000;
/** How long a process may take to end after the signal. */
const graceMs = 5_000;
const shownProcesses = 50;
/** How long reading continues once output has begun to arrive. */
const settleMs = 300;

interface ProcessToolInput extends ComputerInput {
  action: 'start' | 'read' | 'write' | 'stop' | 'list';
  processId?: string;
  command?: string;
  cwd?: string;
  after: number;
  waitSeconds: number;
  text?: string;
}

/** Background processes, which continue after the turn has ended. */
export function processTool(deps: ComputerToolDeps): ServerTool {
  return serverTool<ProcessToolInput>({
    name: 'computer_process',
    description:
      'Starts and manages background processes on a computer (a server, a watcher, a long build): `start` a command, `read` its output from `after` on and wait up to `waitSeconds` for more, `write` text to its standard input, `stop` it, or `list` all processes. Processes continue after the turn ends.',
    access: 'act',
    role: 'editor',
    scope: 'computers:write',
    timeoutMs: (longestWaitSeconds + 60) * 1_000,
    afterCrash: 'again',
    inputSchema: objectSchema(
      {
        action: { enum: ['start', 'read', 'write', 'stop', 'list'] },
        processId: { type: 'string', minLength: 1, maxLength: 80, description: 'The id that `start` returned.' },
        command: {
          type: 'string',
          minLength: 1,
          maxLength: maxCommandLength,
          description: 'The bash command to start.',
        },
        cwd: { ...pathProperty, description: 'The working directory. Default: the home.' },
        after: {
          type: 'integer',
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          default: 0,
          description: 'The `next` that the last `read` returned.',
        },
        waitSeconds: { type: 'integer', minimum: 0, maximum: longestWaitSeconds, default: 5 },
        text: { type: 'string', maxLength: 100_000, description: 'To write.' },
        computerId: computerProperty,
      },
      ['action'],
    ),
    targetOf: computerOfCall(deps),
    async run(given, { turn, toolCallId, target, signal }) {
      const input = { ...given, computerId: target };
      switch (input.action) {
        case 'start': {
          const { command = missing('command'), cwd } = input;
          const client = await awake(deps, turn, input);
          const usualEnv = await signatureFor(deps, turn);
          const start = { processId: toolCallId, command, input: true, usualEnv, ...(cwd !== undefined && { cwd }) };
          const { process } = await client.startProcess(start);
          return { processId: process.processId, state: process.state };
        }
        case 'read':
          return read(deps, turn, input, signal);
        case 'write': {
          const { processId = missing('processId'), text = missing('text') } = input;
          const client = await asIs(deps, turn, input);
          // Each call has its own writer, so a repeated call writes nothing twice.
          await client.sendInput(processId, { number: { writer: toolCallId, seq: 1 }, bytes: Buffer.from(text) });
          return { processId, written: Buffer.byteLength(text) };
        }
        case 'stop':
          return stop(await unpaused(deps, turn, input), input.processId ?? missing('processId'), signal);
        case 'list': {
          const processes = await (await asIs(deps, turn, input)).listProcesses();
          return {
            processes: processes.slice(0, shownProcesses).map(({ processId, command, state, exitCode, startedAt }) => ({
              processId,
              command: firstOf(typeof command === 'string' ? command : command.join(' '), 200),
              state,
              exitCode,
              startedAt,
            })),
          };
        }
      }
    },
  });
}

/** The output since the position or, if there is none, what arrives within the time. */
async function read(
  deps: ComputerToolDeps,
  turn: Turn,
  input: ProcessToolInput,
  signal: AbortSignal,
): Promise<unknown> {
  const client = await asIs(deps, turn, input);
  const { processId = missing('processId'), after, waitSeconds } = input;
  const { outputBytes, state } = await client.process(processId);
  if (after > outputBytes) {
    throw new DomainError(
      'invalid',
      'POSITION_UNKNOWN',
      `\`after\` is ${after}, but the process has written only ${outputBytes} bytes.`,
    );
  }
  const waits = after === outputBytes && state === 'running';
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), waitSeconds * 1_000);
  try {
    const ended = AbortSignal.any([signal, over.signal]);
    const masks = () => deps.secrets.redactors.forSpace(turn.spaceId);
    // `maskedOutput` also reads a little from before `after`: a secret that is split over two results would escape
    // redaction otherwise.
    const open = (request: OutputRequest) => client.output(processId, request);
    const records = maskedOutput(open, masks, { after, follow: waits, signal: ended });
    const { stdout, stderr, exit, position } = await collectOutput(until(records, over, signal), {
      maxBytes: maxReadBytes,
    });
    return { processId, ...describeExit(exit), stdout, stderr, next: Math.max(position, after) };
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The records that arrive until the time is over, the size limit is reached, or {@link settleMs} have passed since the
 * first record. An empty result is no failure.
 */
async function* until(
  records: AsyncIterable<OutputRecord>,
  over: AbortController,
  signal: AbortSignal,
): AsyncGenerator<OutputRecord> {
  let bytes = 0;
  let settled: NodeJS.Timeout | undefined;
  try {
    for await (const record of records) {
      yield record;
      settled ??= setTimeout(() => over.abort(), settleMs);
      bytes += record.payload.length;
      if (bytes >= maxReadBytes) return;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (!over.signal.aborted) throw error;
  } finally {
    clearTimeout(settled);
  }
}

/** Asks the process to end, and kills it if it does not. */
async function stop(client: HostClient, processId: string, signal: AbortSignal): Promise<unknown> {
  await client.signalProcess(processId, 'SIGTERM');
  const look = () => client.process(processId);
  let last = await lookUntil(look, ({ state }) => state !== 'running', { signal, firstMs: 100, forMs: graceMs });
  if (last.state === 'running') {
    await client.signalProcess(processId, 'SIGKILL');
    last = await look();
  }
  return { processId, state: last.state, exitCode: last.exitCode };
}

function missing(name: string): never {
  throw new DomainError('invalid', 'TOOL_INPUT_INVALID', `This action needs \`${name}\`.`);
}
