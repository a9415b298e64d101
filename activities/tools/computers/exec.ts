import { DomainError } from '../../../base/errors.ts';
import type { HostClient } from '../../../integrations/computers/hostClient.ts';
import { collectOutput } from '../../../integrations/computers/output/collectOutput.ts';
import { maskedOutput } from '../../../integrations/computers/output/maskedOutput.ts';
import type { Exit } from '../../../integrations/computers/processes/records.ts';
import { objectSchema, type ServerTool, serverTool } from '../tool.ts';
import { LiveText } from './liveText.ts';
import {
  asIs,
  awake,
  type ComputerInput,
  type ComputerToolDeps,
  computerOfCall,
  computerProperty,
  pathProperty,
  signatureFor,
} from './place.ts';

export const maxCommandLength = 100_000;
const longestSeconds = 1_800;
/** Additional time for waking the computer and ending the process. */
const marginMs = 180_000;
/** The limit of each stream. A result larger than a row becomes a file of the thread. */
const maxOutputBytes = 1_048_576;

interface ExecInput extends ComputerInput {
  command: string;
  cwd?: string;
  stdin?: string;
  timeoutSeconds: number;
}

/** Runs a command to its end. The process has the call's id, so a repeated call reads on from the same process. */
export function execTool(deps: ComputerToolDeps): ServerTool {
  return serverTool<ExecInput>({
    name: 'computer_exec',
    description:
      'Runs a shell command on a computer of the space and waits for it to end. The computer runs Linux; files in its home are kept. `~/drive` is the drive of the space: what a command writes there is in the drive when it ends. Output beyond 1 MiB is cut in the middle. For servers and other background work use computer_process.',
    access: 'act',
    role: 'editor',
    scope: 'computers:write',
    timeoutMs: longestSeconds * 1_000 + marginMs,
    afterCrash: 'again',
    inputSchema: objectSchema(
      {
        command: { type: 'string', minLength: 1, maxLength: maxCommandLength, description: 'For bash.' },
        cwd: { ...pathProperty, description: 'The working directory. Default: the home.' },
        stdin: { type: 'string', maxLength: 1_000_000, description: 'The standard input. Default: empty.' },
        timeoutSeconds: {
          type: 'integer',
          minimum: 1,
          maximum: longestSeconds,
          default: 120,
          description: 'The command is killed after this time.',
        },
        computerId: computerProperty,
      },
      ['command'],
    ),
    targetOf: computerOfCall(deps),
    async run({ command, cwd, stdin, timeoutSeconds }, { turn, toolCallId, target, signal, isGivenUp, live }) {
      const client = await awake(deps, turn, { computerId: target });
      const processId = toolCallId;
      await client.startProcess({
        processId,
        command,
        timeoutMs: timeoutSeconds * 1_000,
        usualEnv: await signatureFor(deps, turn),
        ...(cwd !== undefined && { cwd }),
        ...(stdin !== undefined && { stdin: Buffer.from(stdin).toString('base64') }),
      });
      try {
        const shown = new LiveText(live, await live.shownUntil());
        const masks = () => deps.secrets.redactors.forSpace(turn.spaceId);
        const records = maskedOutput((wanted) => client.output(processId, wanted), masks, { follow: true, signal });
        const collected = await collectOutput(records, {
          maxBytes: maxOutputBytes,
          onRecord: (record) => shown.push(record),
        });
        const { stdout, stderr, truncated, exit } = collected;
        return { processId, ...describeExit(exit), stdout, stderr, ...(truncated && { truncated }) };
      } catch (error) {
        if (isGivenUp()) await kill(client, processId);
        throw error;
      }
    },
    async abandon({ turn, toolCallId, target }) {
      await kill(await asIs(deps, turn, { computerId: target }), toolCallId);
    },
  });
}

export function describeExit(exit: Exit | undefined): Record<string, unknown> {
  if (exit === undefined) return { state: 'running' };
  const { state, exitCode, signal, killedBy } = exit;
  return {
    state,
    ...(exitCode !== null && { exitCode }),
    ...(signal !== null && { signal }),
    ...(killedBy !== null && { killedBy }),
    ...(state === 'lost' && { note: 'The computer ended while the command ran. Changes made before that are kept.' }),
  };
}

async function kill(client: HostClient, processId: string): Promise<void> {
  try {
    await client.signalProcess(processId, 'SIGKILL');
  } catch (error) {
    // The process never began, or ended with its computer.
    if (!(error instanceof DomainError)) throw error;
  }
}
