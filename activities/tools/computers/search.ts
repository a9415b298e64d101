import { DomainError } from '../../../base/errors.ts';
import { firstOf } from '../../../base/text.ts';
import type { HostClient } from '../../../integrations/computers/hostClient.ts';
import { type Exit, isOutput, noteOf } from '../../../integrations/computers/processes/records.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { objectSchema, type ServerTool, serverTool } from '../tool.ts';
import { awake, type ComputerToolDeps, computerProperty, type PathInput, pathProperty, unpaused } from './place.ts';

const timeoutMs = 60_000;
const perFile = 50;
const maxLineCharacters = 500;
/** How much of grep's output is read. */
const maxBytes = 4 * 1_048_576;

interface SearchInput extends PathInput {
  query: string;
  isRegex: boolean;
  ignoreCase: boolean;
  files?: string;
  limit: number;
}

/** Finds text in a computer's files by its own `grep`. */
export function searchTool(deps: ComputerToolDeps): ServerTool {
  return serverTool<SearchInput>({
    name: 'computer_search',
    description:
      'Finds lines in the text files below a folder of a computer. In ask mode the computer must already be running.',
    access: 'read',
    role: 'viewer',
    scope: 'computers:read',
    timeoutMs: timeoutMs * 2,
    afterCrash: 'again',
    inputSchema: objectSchema(
      {
        query: { type: 'string', minLength: 1, maxLength: 1_000, pattern: '^[^\\u0000\\n]*$' },
        path: { ...pathProperty, default: '.' },
        isRegex: {
          type: 'boolean',
          default: false,
          description: 'Whether the query is an extended regular expression.',
        },
        ignoreCase: { type: 'boolean', default: false },
        files: {
          type: 'string',
          minLength: 1,
          maxLength: 200,
          pattern: '^[^\\u0000]*$',
          description: 'Searches only files whose names match this pattern, such as *.ts.',
        },
        limit: { type: 'integer', minimum: 1, maximum: 200, default: 50 },
        computerId: computerProperty,
      },
      ['query'],
    ),
    async run(input, { turn, toolCallId, signal }) {
      const client = await running(deps, turn, input);
      const processId = toolCallId;
      await client.startProcess({ processId, command: commandOf(input), timeoutMs });
      const { text, exit, isCut } = await firstOfOutput(client, processId, signal);
      const found = matchesOf(text);
      // Exit code 2 is grep's own failure, which it describes on standard error.
      if (exit?.exitCode === 2 && found.length === 0) {
        throw new DomainError('unprocessable', 'SEARCH_FAILED', `The search failed: ${firstOf(text.trim(), 500)}`);
      }
      const isOver = exit !== undefined && exit.state === 'exited' && !isCut;
      return { found: found.slice(0, input.limit), hasMore: found.length > input.limit || !isOver };
    },
  });
}

/**
 * Searching wakes no computer in a turn that only reads. In a turn that works, the next command would wake it anyway.
 */
async function running(deps: ComputerToolDeps, turn: Turn, input: SearchInput): Promise<HostClient> {
  if (turn.mode === 'work') return awake(deps, turn, input);
  const client = await unpaused(deps, turn, input);
  await client.status();
  return client;
}

function commandOf({ query, isRegex, ignoreCase, files, path }: SearchInput): string[] {
  return [
    ...['grep', '--recursive', '--line-number', '--null', '--binary-files=without-match', `--max-count=${perFile}`],
    ...['--exclude-dir=.git', '--exclude-dir=node_modules', isRegex ? '--extended-regexp' : '--fixed-strings'],
    ...(ignoreCase ? ['--ignore-case'] : []),
    ...(files === undefined ? [] : [`--include=${files}`]),
    ...['--regexp', query, '--', path],
  ];
}

/** The process's output up to a limit, at which the process is ended. */
async function firstOfOutput(client: HostClient, processId: string, signal: AbortSignal) {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let exit: Exit | undefined;
  let isCut = false;
  for await (const record of client.output(processId, { follow: true, signal })) {
    if (record.kind === 'exit') exit = noteOf<Exit>(record);
    if (!isOutput(record.kind)) continue;
    chunks.push(Buffer.from(record.payload));
    bytes += record.payload.length;
    isCut = bytes >= maxBytes;
    if (isCut) break;
  }
  if (isCut) await client.signalProcess(processId, 'SIGKILL').catch(() => undefined);
  return { text: Buffer.concat(chunks).toString('utf8'), exit, isCut };
}

function matchesOf(text: string) {
  return text.split('\n').flatMap((line) => {
    const [path, rest] = line.split('\0', 2);
    const [, number, content = ''] = /^(\d+):(.*)$/s.exec(rest ?? '') ?? [];
    return path === undefined || number === undefined
      ? []
      : [{ path, line: Number(number), text: firstOf(content, maxLineCharacters) }];
  });
}
