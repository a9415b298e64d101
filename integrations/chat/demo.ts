import { createHash } from 'node:crypto';
import { setImmediate as nextTurnOfEventLoop, setTimeout as sleep } from 'node:timers/promises';
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';
import { type DemoCommand, parseCommands, toolRounds, userMessages } from './demoCommands.ts';
import { DemoFailures } from './demoFailures.ts';
import { estimatePromptTokens, estimateTokens } from './tokens.ts';

/**
 * The built-in model: an ordinary AI SDK model that needs no account and is deterministic, so that everything can be
 * tried and tested. docs/models.md lists its commands.
 */
export function createDemoModel(): LanguageModelV4 {
  const failures = new DemoFailures();
  return {
    specificationVersion: 'v4',
    provider: 'demo',
    modelId: 'demo',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('The demo model only streams.')),
    async doStream(options) {
      const parts = new DemoAnswer(options, failures).stream();
      // Read the first part now: as with a real provider, a failure before the first token fails the request, not the
      // stream.
      const first = await parts.next();
      let held = first.done ? undefined : first.value;
      const stream = new ReadableStream<LanguageModelV4StreamPart>(
        {
          async pull(controller) {
            if (held !== undefined) {
              controller.enqueue(held);
              held = undefined;
              return;
            }
            const { done, value } = await parts.next();
            if (done) controller.close();
            else controller.enqueue(value);
          },
          cancel: () => void parts.return(),
        },
        { highWaterMark: 0 },
      );
      return { stream };
    },
  };
}

type Parts = AsyncGenerator<LanguageModelV4StreamPart, void>;

/** One answer of the demo model: the commands of the last message, resumed after the tool results so far. */
class DemoAnswer {
  private readonly options: LanguageModelV4CallOptions;
  private readonly failures: DemoFailures;
  private readonly key: string;
  private readonly counted = { text: 0, reasoning: 0, tools: 0 };
  private parts = 0;
  private openText: string | undefined;

  constructor(options: LanguageModelV4CallOptions, failures: DemoFailures) {
    this.options = options;
    this.failures = failures;
    this.key = createHash('sha256').update(JSON.stringify(options.prompt)).digest('hex').slice(0, 16);
  }

  async *stream(): Parts {
    const { rounds, results } = toolRounds(this.options.prompt);
    const messages = userMessages(this.options.prompt);
    const last = messages.at(-1) ?? '';
    const commands = afterToolRounds(parseCommands(last), rounds);
    let reason: LanguageModelV4FinishReason['unified'] = 'stop';

    // A failure with an HTTP status precedes the stream; every other failure happens within it.
    const refused = commands[0]?.name === 'fail' && /^\d/.test(commands[0].failure) ? commands.shift() : undefined;
    if (refused?.name === 'fail') await this.failures.fail(this.key, refused, this.options.abortSignal);
    yield { type: 'stream-start', warnings: [] };

    if (results.length > 0) yield* this.say(results.join('\n'));
    for (const command of commands) {
      if (command.name === 'fail') {
        const early = await this.failures.fail(this.key, command, this.options.abortSignal);
        if (early === 'withoutReason') return;
        if (early === 'empty') return yield this.finish('stop');
        continue;
      }
      yield* this.run(command, messages);
      if (command.name === 'tools') {
        reason = 'tool-calls';
        break;
      }
      if (this.isFull()) {
        reason = 'length';
        break;
      }
    }
    if (this.counted.text === 0 && reason === 'stop') yield* this.say(rounds > 0 ? 'Done.' : greeting(last));
    yield* this.closeText();
    this.failures.survived(this.key);
    yield this.finish(reason);
  }

  private async *run(command: Exclude<DemoCommand, { name: 'fail' }>, messages: string[]): Parts {
    switch (command.name) {
      case 'say':
        return yield* this.say(command.text);
      case 'recall':
        return yield* this.say(messages.map((message, index) => `${index + 1}. ${message}`).join('\n'));
      case 'tokens':
        return yield* this.say(words(command.count), command.intervalMs);
      case 'think':
        return yield* this.think(command.text);
      case 'tools':
        return yield* this.callTools(command.calls);
    }
  }

  private async *say(text: string | Iterable<string>, intervalMs = 0): Parts {
    const startedMs = performance.now();
    let sent = 0;
    const begun = this.openText !== undefined;
    if (this.openText === undefined) {
      this.openText = `demo-${this.parts++}`;
      yield { type: 'text-start', id: this.openText };
    }
    const id = this.openText;
    if (begun) yield { type: 'text-delta', id, delta: '\n' };
    for (const delta of typeof text === 'string' ? split(text) : text) {
      if (this.isFull()) return;
      const waitMs = startedMs + sent++ * intervalMs - performance.now();
      if (waitMs > 0) await sleep(waitMs, undefined, { signal: this.options.abortSignal });
      else if (sent % 256 === 0) await nextTurnOfEventLoop();
      this.counted.text += 1;
      yield { type: 'text-delta', id, delta };
    }
  }

  private async *think(text: string): Parts {
    yield* this.closeText();
    const id = `demo-${this.parts++}`;
    yield { type: 'reasoning-start', id };
    for (const delta of split(text)) {
      if (this.isFull()) break;
      this.counted.reasoning += 1;
      yield { type: 'reasoning-delta', id, delta };
    }
    yield { type: 'reasoning-end', id };
  }

  private async *callTools(calls: { toolName: string; input: string }[]): Parts {
    yield* this.closeText();
    for (const [index, { toolName, input }] of calls.entries()) {
      const id = `call_${this.key}_${index}`;
      this.counted.tools += estimateTokens(input.length);
      yield { type: 'tool-input-start', id, toolName };
      const half = Math.ceil(input.length / 2);
      for (const delta of [input.slice(0, half), input.slice(half)]) yield { type: 'tool-input-delta', id, delta };
      yield { type: 'tool-input-end', id };
      yield { type: 'tool-call', toolCallId: id, toolName, input };
    }
  }

  private async *closeText(): Parts {
    if (this.openText === undefined) return;
    yield { type: 'text-end', id: this.openText };
    this.openText = undefined;
  }

  private finish(reason: LanguageModelV4FinishReason['unified']): LanguageModelV4StreamPart {
    return { type: 'finish', finishReason: { unified: reason, raw: reason }, usage: this.usage() };
  }

  private isFull(): boolean {
    return this.outputTokens() >= (this.options.maxOutputTokens ?? Number.POSITIVE_INFINITY);
  }

  private outputTokens(): number {
    return this.counted.text + this.counted.reasoning + this.counted.tools;
  }

  /** One token for each word and the rule of thumb for the rest: the same prompt always costs the same. */
  private usage(): LanguageModelV4Usage {
    const { text, reasoning } = this.counted;
    const input = estimatePromptTokens(this.options.prompt);
    return {
      inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: this.outputTokens(), text, reasoning },
    };
  }
}

/** The commands that remain after this many rounds of tool calls. */
function afterToolRounds(commands: DemoCommand[], rounds: number): DemoCommand[] {
  let left = commands;
  for (let round = 0; round < rounds; round++) {
    const tools = left.findIndex(({ name }) => name === 'tools');
    left = tools < 0 ? [] : left.slice(tools + 1);
  }
  return left;
}

function greeting(message: string): string {
  const named = message.length > 200 ? `${message.slice(0, 200)}…` : message;
  return `This is Atrium's built-in demo model, not a real one. Your message was: "${named}"`;
}

function* words(count: number): Iterable<string> {
  for (let number = 1; number <= count; number++) yield number === 1 ? 'w1' : ` w${number}`;
}

/** Splits a text into words, each with the space before it: joined they give the same text. */
function split(text: string): string[] {
  return text.match(/\s*\S+|\s+$/g) ?? [];
}
