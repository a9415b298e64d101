import type { UiChunk } from './chunks.ts';

/** The parts of a stored UI message, as AI SDK clients build them from the same chunks. */
export type MessagePart =
  | { type: 'step-start' }
  | { type: 'text' | 'reasoning'; text: string; state: 'streaming' | 'done'; providerMetadata?: unknown }
  | {
      type: 'dynamic-tool';
      toolName: string;
      toolCallId: string;
      state: 'input-streaming' | 'input-available' | 'output-available' | 'output-error';
      input?: unknown;
      output?: unknown;
      errorText?: string;
      callProviderMetadata?: unknown;
    }
  | { type: 'source-url'; sourceId: string; url: string; title?: string }
  | { type: 'source-document'; sourceId: string; mediaType: string; title: string; filename?: string }
  | { type: 'file'; url: string; mediaType: string; filename?: string };

type TextPart = Extract<MessagePart, { type: 'text' | 'reasoning' }>;
type ToolPart = Extract<MessagePart, { type: 'dynamic-tool' }>;

/** A part, and the id by which `data-attempt` would discard it. */
interface IdentifiedPart {
  id: string | undefined;
  part: MessagePart;
}

/**
 * Builds a turn's message from its log, or from the beginning of its log. Feed it chunks in order. Parts that a later
 * attempt discards disappear, so a stopped turn keeps exactly what its reader saw.
 */
export class MessageFold {
  #parts: IdentifiedPart[] = [];
  readonly #open = new Map<string, TextPart>();
  readonly #tools = new Map<string, ToolPart>();

  add(chunk: UiChunk): void {
    switch (chunk.type) {
      case 'start-step':
        this.#push(undefined, { type: 'step-start' });
        break;
      case 'text-start':
      case 'reasoning-start':
        this.#openText(chunk.id, chunk.type === 'text-start' ? 'text' : 'reasoning', chunk.providerMetadata);
        break;
      case 'text-delta':
      case 'reasoning-delta': {
        const part = this.#open.get(chunk.id);
        if (part !== undefined) part.text += chunk.delta;
        break;
      }
      case 'text-end':
      case 'reasoning-end':
        this.#closeText(chunk.id, chunk.providerMetadata);
        break;
      case 'tool-input-start':
        this.#tool(chunk.toolCallId, chunk.toolName).state = 'input-streaming';
        break;
      case 'tool-input-available':
        Object.assign(this.#tool(chunk.toolCallId, chunk.toolName), {
          state: 'input-available',
          input: chunk.input,
          ...(chunk.providerMetadata !== undefined && { callProviderMetadata: chunk.providerMetadata }),
        });
        break;
      case 'tool-input-error':
        Object.assign(this.#tool(chunk.toolCallId, chunk.toolName), {
          state: 'output-error',
          input: chunk.input,
          errorText: chunk.errorText,
        });
        break;
      case 'tool-output-available':
        this.#finishTool(chunk.toolCallId, { state: 'output-available', output: chunk.output });
        break;
      case 'tool-output-error':
        this.#finishTool(chunk.toolCallId, { state: 'output-error', errorText: chunk.errorText });
        break;
      case 'source-url':
      case 'source-document':
      case 'file':
        this.#push(undefined, chunk);
        break;
      case 'data-attempt':
        this.#discard(chunk.data.discard);
        break;
      default:
        // The other chunks leave nothing in the message.
        break;
    }
  }

  /** The message's parts so far, without empty text parts. */
  parts(): MessagePart[] {
    return this.#parts.map(({ part }) => part).filter((part) => part.type !== 'text' || part.text !== '');
  }

  /** Text and reasoning parts that are not closed. */
  openTextIds(): { id: string; type: 'text' | 'reasoning' }[] {
    return [...this.#open].map(([id, { type }]) => ({ id, type }));
  }

  /** The open text part, if the step has said nothing else. */
  onlyText(): { id: string; text: string } | undefined {
    const [only, ...others] = this.#parts.filter(({ part }) => part.type !== 'step-start');
    if (only?.part.type !== 'text' || others.length > 0 || only.id === undefined || !this.#open.has(only.id))
      return undefined;
    return { id: only.id, text: only.part.text };
  }

  /** Tool calls without a result. */
  openToolIds(): string[] {
    return [...this.#tools.values()].flatMap(({ state, toolCallId }) =>
      state === 'input-available' ? [toolCallId] : [],
    );
  }

  #push(id: string | undefined, part: MessagePart): void {
    this.#parts.push({ id, part });
  }

  #openText(id: string, type: 'text' | 'reasoning', providerMetadata: unknown): void {
    const part: TextPart = { type, text: '', state: 'streaming' };
    if (providerMetadata !== undefined) part.providerMetadata = providerMetadata;
    this.#open.set(id, part);
    this.#push(id, part);
  }

  #closeText(id: string, providerMetadata: unknown): void {
    const part = this.#open.get(id);
    this.#open.delete(id);
    if (part === undefined) return;
    // Repair lone surrogates only at the end: one character may be split between two deltas.
    part.text = part.text.toWellFormed();
    part.state = 'done';
    if (providerMetadata !== undefined) part.providerMetadata = providerMetadata;
  }

  #tool(toolCallId: string, toolName: string): ToolPart {
    const existing = this.#tools.get(toolCallId);
    if (existing !== undefined) return existing;
    const part: ToolPart = { type: 'dynamic-tool', toolName, toolCallId, state: 'input-streaming' };
    this.#tools.set(toolCallId, part);
    this.#push(toolCallId, part);
    return part;
  }

  #finishTool(toolCallId: string, result: Partial<ToolPart>): void {
    const part = this.#tools.get(toolCallId);
    if (part !== undefined) Object.assign(part, result);
  }

  #discard(ids: string[]): void {
    const gone = new Set(ids);
    this.#parts = this.#parts.filter(({ id }) => id === undefined || !gone.has(id));
    for (const id of gone) {
      this.#open.delete(id);
      this.#tools.delete(id);
    }
  }
}

/** The ids of the parts that a step has begun so far, for the next attempt to discard. */
export function partIdsOf(chunks: UiChunk[]): string[] {
  const ids = new Set<string>();
  for (const chunk of chunks) {
    if (chunk.type === 'text-start' || chunk.type === 'reasoning-start') ids.add(chunk.id);
    if (chunk.type === 'tool-input-start' || chunk.type === 'tool-input-available') ids.add(chunk.toolCallId);
    if (chunk.type === 'data-attempt') for (const id of chunk.data.discard) ids.delete(id);
  }
  return [...ids];
}
