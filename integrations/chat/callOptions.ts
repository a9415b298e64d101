import type {
  JSONObject,
  LanguageModelV4CallOptions,
  LanguageModelV4Prompt,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import type { CatalogueModel, ProviderName } from './catalogue.ts';
import type { CallSettings, ModelCall } from './modelCall.ts';

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

/** The efforts that the AI SDK can turn into a provider's setting; a catalogue may offer any of them. */
export type Effort = (typeof efforts)[number];
export const knownEfforts: readonly Effort[] = efforts;

/**
 * The key of each SDK's own options, with the options that we always set. The SDK for compatible servers passes unknown
 * options on, but only from the key that is the provider's name (`providers.ts`).
 */
const providerDefaults: Record<ProviderName, { key: string; options: JSONObject }> = {
  // Conversations are stored here, not at OpenAI. Reasoning then travels encrypted in the prompt.
  openai: { key: 'openai', options: { store: false } },
  anthropic: { key: 'anthropic', options: {} },
  compatible: { key: 'compatible', options: {} },
  demo: { key: 'demo', options: {} },
};

export type CallOptions = LanguageModelV4CallOptions & { abortSignal: AbortSignal };

/**
 * A model call in the SDK's terms: effort, limits, caching marks, and the options of the provider and the catalogue.
 */
export function callOptions(
  call: ModelCall,
  model: CatalogueModel,
  effort: string | undefined,
  abortSignal: AbortSignal,
): CallOptions {
  const { key, options } = providerDefaults[model.adapter];
  const tools = model.capabilities.tools && call.tools?.length ? call.tools : undefined;
  return {
    prompt: promptFor(model.adapter, call.prompt),
    tools,
    toolChoice: tools === undefined ? undefined : call.toolChoice,
    // Omitted unless asked for: servers refuse a prompt and a limit that together exceed their window.
    maxOutputTokens: call.maxOutputTokens && Math.min(call.maxOutputTokens, model.capabilities.maxOutputTokens),
    reasoning: efforts.find((known) => known === effort),
    ...settingsOf(call.settings),
    providerOptions: { [key]: { ...options, ...toolCallsAtOnce(call, model), ...model.providerOptions } },
    abortSignal,
  };
}

function settingsOf({ json, parallelToolCalls: _, ...settings }: CallSettings = {}): Partial<CallOptions> {
  return { ...settings, ...(json !== undefined && { responseFormat: { type: 'json', ...json } }) };
}

/** Every API has its own name for this setting. */
function toolCallsAtOnce({ settings, tools }: ModelCall, { adapter }: CatalogueModel): JSONObject {
  const { parallelToolCalls } = settings ?? {};
  if (parallelToolCalls === undefined || !tools?.length) return {};
  if (adapter === 'anthropic') return { disableParallelToolUse: !parallelToolCalls };
  if (adapter === 'compatible') return { parallel_tool_calls: parallelToolCalls };
  return adapter === 'openai' ? { parallelToolCalls } : {};
}

function promptFor(adapter: ProviderName, prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  if (adapter === 'anthropic') return withCacheMarks(prompt);
  return adapter === 'compatible' ? withPicturesBehind(prompt) : prompt;
}

/**
 * Anthropic caches up to marks that the request sets: one after the system prompt (which covers the tools too, they
 * come before it) and one on each of the last two messages that are not the model's own. The next step of a turn finds
 * the older mark and pays for what is new. The other providers cache by themselves.
 */
export function withCacheMarks(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  const marked = new Set<number>();
  const lastSystem = prompt.findLastIndex((message) => message.role === 'system');
  if (lastSystem >= 0) marked.add(lastSystem);
  for (let index = prompt.length - 1, found = 0; index >= 0 && found < 2; index--) {
    const role = prompt[index]?.role;
    if (role !== 'user' && role !== 'tool') continue;
    marked.add(index);
    found += 1;
  }
  return prompt.map((message, index) =>
    marked.has(index) ? { ...message, providerOptions: withMark(message.providerOptions) } : message,
  );
}

function withMark(options: SharedV4ProviderOptions | undefined): SharedV4ProviderOptions {
  return { ...options, anthropic: { cacheControl: { type: 'ephemeral' }, ...options?.anthropic } };
}

type Message = LanguageModelV4Prompt[number];
type ToolMessage = Extract<Message, { role: 'tool' }>;
type UserContent = Extract<Message, { role: 'user' }>['content'];

/**
 * Tool results of chat completions can hold only text, so their pictures follow as a user message that names the call
 * of each.
 */
function withPicturesBehind(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  return prompt.flatMap((message): Message[] => {
    if (message.role !== 'tool') return [message];
    const pictures: UserContent = [];
    const content = message.content.map((part) => withoutPictures(part, pictures));
    if (pictures.length === 0) return [message];
    return [
      { ...message, content },
      { role: 'user', content: pictures },
    ];
  });
}

function withoutPictures(part: ToolMessage['content'][number], pictures: UserContent): ToolMessage['content'][number] {
  if (part.type !== 'tool-result' || part.output.type !== 'content') return part;
  const texts: string[] = [];
  for (const piece of part.output.value) {
    if (piece.type === 'text') texts.push(piece.text);
    if (piece.type !== 'file') continue;
    const { mediaType, data } = piece;
    pictures.push({ type: 'text', text: `[The picture in the result of ${part.toolName}, call ${part.toolCallId}]` });
    pictures.push({ type: 'file', mediaType, data });
  }
  return { ...part, output: { type: 'text', value: texts.join('\n') } };
}
