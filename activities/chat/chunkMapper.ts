import { newId } from '../../base/ids.ts';
import { wellFormed } from '../../base/text.ts';
import type { ModelPart } from '../../integrations/chat/modelCall.ts';
import type { UiChunk } from '../../models/chat/turnLog/chunks.ts';

/** A tool call that the model has made; `input` is undefined when its JSON did not parse. */
export interface MadeToolCall {
  id: string;
  toolName: string;
  input: unknown;
  inputError?: string;
}

/** Text of an earlier attempt, in a part that is still open. */
export interface KeptText {
  id: string;
  text: string;
}

/**
 * Converts a model's parts into chunks of the UI stream. Part ids are prefixed with the step and the epoch, which makes
 * them unique in the turn: the ids of a failed attempt never collide with those of the next. Tool calls get our own
 * ids, since some providers number theirs from 0 in every answer.
 */
export class ChunkMapper {
  readonly #prefix: string;
  readonly #toolIds = new Map<string, string>();
  readonly #open = new Map<string, 'text-end' | 'reasoning-end'>();
  readonly toolCalls: MadeToolCall[] = [];
  /** The part of the earlier attempt that this attempt's first part continues; undefined once that has begun. */
  #kept: KeptText | undefined;
  /** The provider's id of the continued part, and the log's. */
  #continued: { part: string; id: string } | undefined;
  /** The trailing spaces of the continued text. They were not sent to the model, so it may repeat them. */
  #spaces = '';

  constructor(step: number, epoch: number, kept?: KeptText) {
    this.#prefix = `${step}.${epoch}.`;
    this.#kept = kept;
  }

  map(part: ModelPart): UiChunk[] {
    const kept = this.#kept;
    this.#kept = undefined;
    if (kept === undefined) return this.#map(part);
    if (part.type !== 'text-start') return [{ type: 'text-end', id: kept.id }, ...this.#map(part)];
    this.#continued = { part: part.id, id: kept.id };
    this.#spaces = kept.text.slice(kept.text.trimEnd().length);
    this.#open.set(part.id, 'text-end');
    return [];
  }

  #idOf(part: string): string {
    return this.#continued?.part === part ? this.#continued.id : this.#prefix + part;
  }

  /** The new text of a delta that may repeat spaces that are already there. */
  #unsaid(delta: string): string {
    let same = 0;
    while (same < this.#spaces.length && delta[same] === this.#spaces[same]) same++;
    this.#spaces = same === delta.length ? this.#spaces.slice(same) : '';
    return delta.slice(same);
  }

  #map(part: ModelPart): UiChunk[] {
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        this.#open.set(part.id, part.type === 'text-start' ? 'text-end' : 'reasoning-end');
        return [withMetadata({ type: part.type, id: this.#idOf(part.id) }, part)];
      case 'text-delta':
      case 'reasoning-delta': {
        const delta = this.#spaces === '' ? part.delta : this.#unsaid(part.delta);
        return delta === '' ? [] : [{ type: part.type, id: this.#idOf(part.id), delta }];
      }
      case 'text-end':
      case 'reasoning-end':
        this.#open.delete(part.id);
        return [withMetadata({ type: part.type, id: this.#idOf(part.id) }, part)];
      case 'tool-input-start':
        return [
          { type: 'tool-input-start', toolCallId: this.#toolId(part.id), toolName: part.toolName, dynamic: true },
        ];
      case 'tool-input-delta':
        return [{ type: 'tool-input-delta', toolCallId: this.#toolId(part.id), inputTextDelta: part.delta }];
      case 'tool-input-end':
        return [];
      case 'tool-call':
        return [this.#toolCall(part)];
      case 'source':
        return [
          part.sourceType === 'url'
            ? { type: 'source-url', sourceId: part.id, url: part.url, title: part.title }
            : {
                type: 'source-document',
                sourceId: part.id,
                mediaType: part.mediaType,
                title: part.title,
                filename: part.filename,
              },
        ];
      case 'file': {
        const url = 'url' in part.data ? part.data.url : `data:${part.mediaType};base64,${part.data.base64}`;
        return [{ type: 'file', url, mediaType: part.mediaType }];
      }
    }
  }

  /** Closes the parts that an interrupted answer left open. */
  closeOpen(): UiChunk[] {
    const chunks: UiChunk[] = [...this.#open].map(([id, type]) => ({ type, id: this.#idOf(id) }));
    if (this.#kept !== undefined) chunks.push({ type: 'text-end', id: this.#kept.id });
    this.#kept = undefined;
    this.#open.clear();
    return chunks;
  }

  #toolCall(part: Extract<ModelPart, { type: 'tool-call' }>): UiChunk {
    const id = this.#toolId(part.toolCallId);
    const { toolName } = part;
    const parsed = parseInput(part.input);
    if (!parsed.ok) {
      const inputError = 'The input of this tool call is not valid JSON.';
      this.toolCalls.push({ id, toolName, input: undefined, inputError });
      return {
        type: 'tool-input-error',
        toolCallId: id,
        toolName,
        input: part.input.toWellFormed(),
        errorText: inputError,
        dynamic: true,
      };
    }
    this.toolCalls.push({ id, toolName, input: parsed.value });
    return withMetadata(
      { type: 'tool-input-available', toolCallId: id, toolName, input: parsed.value, dynamic: true },
      part,
    );
  }

  #toolId(providersId: string): string {
    const id = this.#toolIds.get(providersId) ?? newId('toolCall');
    this.#toolIds.set(providersId, id);
    return id;
  }
}

function parseInput(text: string): { ok: true; value: unknown } | { ok: false } {
  try {
    return { ok: true, value: text.trim() === '' ? {} : wellFormed(JSON.parse(text)) };
  } catch {
    return { ok: false };
  }
}

function withMetadata<C extends UiChunk>(chunk: C, part: { providerMetadata?: unknown }): C {
  return part.providerMetadata === undefined ? chunk : { ...chunk, providerMetadata: part.providerMetadata };
}
