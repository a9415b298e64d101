/**
 * The fake provider's behaviour for one request. All fields are optional: `{}` answers "Hello from the fake provider."
 */
export interface FakeScript {
  /** Answer with this status and `body` instead of a stream. */
  status?: number;
  headers?: Record<string, string>;
  body?: string;

  /** Wait this long before the headers. */
  headersDelayMs?: number;
  /** The answer's id. Default: numbered. */
  id?: string;
  /** Wait this long after the headers, before the first token. */
  firstTokenDelayMs?: number;

  /** Reasoning before the text, one delta for each piece. */
  reasoning?: string[];
  /** The text, one delta for each piece, or a number of generated tokens. */
  tokens?: string[] | number;
  /** Between two tokens, on an absolute schedule. 0 sends as fast as the client reads. */
  intervalMs?: number;
  /** Whether generated tokens are the time of sending (see `stampNow`) instead of numbered words. */
  stamps?: boolean;
  /** Tokens per write, if unpaced. */
  tokensPerWrite?: number;
  toolCalls?: FakeToolCall[];

  /** Null ends the stream without a reason. Default: fits the content. */
  finishReason?: 'stop' | 'length' | 'tool-calls' | 'content-filter' | null;
  /** Null reports no usage. */
  usage?: FakeUsage | null;

  /** Break off after this many deltas, or after exactly this many bytes of the body. */
  fail?: {
    how: 'cut' | 'reset' | 'stall' | 'badJson' | 'errorEvent' | 'end';
    afterDeltas?: number;
    afterBytes?: number;
  };
  /** Send a comment at this interval, to keep the connection alive as servers do. */
  keepAliveMs?: number;
}

export interface FakeToolCall {
  id: string;
  name: string;
  /** The arguments as sent, not necessarily valid JSON. They are split into `pieces` deltas (default 3). */
  arguments: string;
  pieces?: number;
}

export interface FakeUsage {
  inputTokens: number;
  cachedInputTokens?: number;
  outputTokens: number;
  reasoningTokens?: number;
}

export interface FakeRequest {
  path: string;
  headers: Record<string, string | string[] | undefined>;
  body: FakeRequestBody;
}

/** The fields of the three request formats that scripts use. */
export interface FakeRequestBody {
  model: string;
  stream?: boolean;
  [field: string]: unknown;
}

export type FakeDelta =
  | { kind: 'reasoning' | 'text'; text: string }
  | { kind: 'toolStart'; index: number; call: FakeToolCall }
  | { kind: 'toolDelta'; index: number; text: string }
  | { kind: 'toolEnd'; index: number; call: FakeToolCall };

/** The script in the request itself: by its model's name, or by a line `fake {json}` in its last message. */
export function scriptOf(body: FakeRequestBody): FakeScript {
  const paced = /^paced-(\d+)-(\d+)(-stamps)?$/.exec(body.model);
  if (paced) return { tokens: Number(paced[1]), intervalMs: Number(paced[2]), stamps: paced[3] !== undefined };
  const flat = /^flat-(\d+)(?:-(\d+))?$/.exec(body.model);
  if (flat) return { tokens: Number(flat[1]), tokensPerWrite: Number(flat[2] ?? 64) };
  const asked = /(?:^|\n)fake (\{.*\})(?:\n|$)/.exec(lastMessageText(body));
  return asked ? (JSON.parse(asked[1] ?? '{}') as FakeScript) : {};
}

function lastMessageText(body: FakeRequestBody): string {
  const messages = (body.messages ?? body.input) as { content?: unknown }[] | undefined;
  const content = messages?.at(-1)?.content;
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: { text?: unknown }) => (typeof part.text === 'string' ? part.text : '')).join('\n');
}

/** The number of a script's deltas, and access to each. Generated tokens are made when they are sent. */
export function deltasOf(script: FakeScript): { count: number; at(index: number): FakeDelta } {
  const before: FakeDelta[] = (script.reasoning ?? []).map((text) => ({ kind: 'reasoning', text }));
  const tokens =
    script.tokens ??
    (script.toolCalls || script.fail?.afterDeltas === 0 ? [] : ['Hello', ' from the', ' fake provider.']);
  const tokenCount = typeof tokens === 'number' ? tokens : tokens.length;
  const after = (script.toolCalls ?? []).flatMap(toolDeltas);
  return {
    count: before.length + tokenCount + after.length,
    at(index) {
      const reasoning = before[index];
      if (reasoning) return reasoning;
      const token = index - before.length;
      if (token >= tokenCount) return after[token - tokenCount] as FakeDelta;
      if (typeof tokens !== 'number') return { kind: 'text', text: tokens[token] ?? '' };
      return { kind: 'text', text: script.stamps ? `${stampNow()} ` : `w${token} ` };
    },
  };
}

function toolDeltas(call: FakeToolCall, index: number): FakeDelta[] {
  const size = Math.max(1, Math.ceil(call.arguments.length / (call.pieces ?? 3)));
  const pieces: FakeDelta[] = [];
  for (let at = 0; at < call.arguments.length; at += size) {
    pieces.push({ kind: 'toolDelta', index, text: call.arguments.slice(at, at + size) });
  }
  return [{ kind: 'toolStart', index, call }, ...pieces, { kind: 'toolEnd', index, call }];
}

/** Microseconds of the machine's monotonic clock, which all processes share. The difference of two is a lag. */
export function stampNow(): number {
  return Number(process.hrtime.bigint() / 1000n);
}
