import type { LanguageModelV4Prompt } from '@ai-sdk/provider';

export type DemoFailure = '429' | '500' | '529' | 'cut' | 'stall' | 'badjson' | 'end' | 'empty';

export type DemoCommand =
  | { name: 'say' | 'think'; text: string }
  | { name: 'tokens'; count: number; intervalMs: number }
  | { name: 'tools'; calls: { toolName: string; input: string }[] }
  | { name: 'fail'; failure: DemoFailure; times: number; retryAfterSeconds: number | undefined }
  | { name: 'recall' };

const failures: readonly string[] = ['429', '500', '529', 'cut', 'stall', 'badjson', 'end', 'empty'];
const known =
  '/say TEXT, /tokens N [INTERVAL_MS], /think TEXT, /tool NAME {json}, /recall, and /fail CODE [TIMES [SECONDS]] ' +
  `with one of the codes ${failures.join(', ')}`;
const maxTokens = 100_000;
const maxIntervalMs = 60_000;

/**
 * The commands of a message: its lines that begin with a slash, in order. A run of `/tool` lines is one command, since
 * its calls are made in parallel. An unknown command is reported in the answer instead of being ignored.
 */
export function parseCommands(message: string): DemoCommand[] {
  const commands: DemoCommand[] = [];
  for (const line of message.split('\n').map((text) => text.trim())) {
    if (!line.startsWith('/')) continue;
    const command = parseLine(line);
    const previous = commands.at(-1);
    if (command.name === 'tools' && previous?.name === 'tools') previous.calls.push(...command.calls);
    else commands.push(command);
  }
  return commands;
}

function parseLine(line: string): DemoCommand {
  const [, name = '', rest = ''] = /^\/(\S*)\s*(.*)$/s.exec(line) ?? [];
  const words = rest.split(/\s+/).filter((word) => word !== '');
  switch (name) {
    case 'say':
    case 'think':
      return { name, text: rest };
    case 'recall':
      return { name };
    case 'tokens': {
      const count = wholeNumber(words[0], maxTokens);
      const intervalMs = wholeNumber(words[1] ?? '0', maxIntervalMs);
      if (count === undefined || intervalMs === undefined) break;
      return { name, count, intervalMs };
    }
    case 'tool': {
      const [, toolName, input = ''] = /^(\S+)\s*(.*)$/s.exec(rest) ?? [];
      if (toolName === undefined) break;
      return { name: 'tools', calls: [{ toolName, input: input === '' ? '{}' : input }] };
    }
    case 'fail': {
      const failure = words[0]?.toLowerCase();
      const times = words[1] === undefined ? Number.POSITIVE_INFINITY : wholeNumber(words[1], 1_000);
      if (!isFailure(failure) || times === undefined) break;
      return { name, failure, times, retryAfterSeconds: wholeNumber(words[2], 86_400) };
    }
  }
  return { name: 'say', text: `The demo model does not understand "${line.slice(0, 100)}". It knows ${known}.` };
}

function isFailure(word: string | undefined): word is DemoFailure {
  return word !== undefined && failures.includes(word);
}

function wholeNumber(word: string | undefined, max: number): number | undefined {
  return word !== undefined && /^\d{1,9}$/.test(word) ? Math.min(Number(word), max) : undefined;
}

/**
 * The user's own texts, oldest first. Texts that were added to a message (files, the sender's tabs, a summary) are
 * marked as asides and left out.
 */
export function userMessages(prompt: LanguageModelV4Prompt): string[] {
  return prompt.flatMap((message) => {
    if (message.role !== 'user') return [];
    const own = message.content.filter(({ providerOptions }) => providerOptions?.demo?.aside !== true);
    return own.length === 0 && message.content.length > 0
      ? []
      : [own.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')];
  });
}

/** The number of tool rounds since the user's last message, and the last round's results. */
export function toolRounds(prompt: LanguageModelV4Prompt): { rounds: number; results: string[] } {
  let rounds = 0;
  let results: string[] = [];
  for (const message of prompt.slice(prompt.findLastIndex(({ role }) => role === 'user') + 1)) {
    if (message.role === 'assistant' && message.content.some(({ type }) => type === 'tool-call')) {
      rounds += 1;
      results = [];
    }
    if (message.role !== 'tool') continue;
    for (const part of message.content) {
      if (part.type === 'tool-result') results.push(`${part.toolName}: ${quote(part.output)}`);
    }
  }
  return { rounds, results };
}

type ToolOutput = Extract<
  Extract<LanguageModelV4Prompt[number], { role: 'tool' }>['content'][number],
  { type: 'tool-result' }
>['output'];

function quote(output: ToolOutput): string {
  if (output.type === 'text' || output.type === 'error-text') return output.value;
  if (output.type === 'content') {
    return output.value.map((part) => (part.type === 'text' ? part.text : '[a picture]')).join('\n');
  }
  return output.type === 'execution-denied'
    ? `denied${output.reason ? `, ${output.reason}` : ''}`
    : JSON.stringify(output.value);
}
