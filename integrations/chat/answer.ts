import type { LanguageModelV4StreamPart, SharedV4ProviderMetadata } from '@ai-sdk/provider';
import type { DeltaKind } from './deltaEvents.ts';
import { ProviderError } from './errors.ts';
import type { ModelFinishReason, ModelPart } from './modelCall.ts';

type FinishPart = Extract<LanguageModelV4StreamPart, { type: 'finish' }>;

interface OpenPart {
  kind: DeltaKind;
  /** Our id of the part. */
  id: string;
  metadata: SharedV4ProviderMetadata | undefined;
}

/**
 * Normalises one provider's stream part by part, and returns at its end how the answer ended. Text and reasoning parts
 * get our own ids, since the SDKs reuse an id for a second part of the same answer.
 */
export class Answer {
  private readonly open = new Map<string, OpenPart>();
  private last: OpenPart | undefined;
  private parts = 0;
  private hasText = false;
  private toolCalls = 0;
  private files = 0;
  private finish: FinishPart | undefined;
  /** The length of all deltas, for estimating the usage when the provider sends none. */
  outputCharacters = 0;

  /**
   * Converts a part. Undefined for parts that are dropped: metadata, pings, empty deltas, tools that the provider runs.
   */
  take(part: LanguageModelV4StreamPart): ModelPart | undefined {
    switch (part.type) {
      case 'text-delta':
      case 'reasoning-delta':
        this.last = this.partOf(part);
        return this.more(part.delta);
      case 'text-start':
      case 'reasoning-start': {
        const kind = part.type === 'text-start' ? 'text' : 'reasoning';
        const id = `${kind}-${this.parts++}`;
        this.open.set(part.id, { kind, id, metadata: part.providerMetadata });
        return { type: part.type, id, providerMetadata: part.providerMetadata };
      }
      case 'text-end':
      case 'reasoning-end': {
        const { id, metadata } = this.partOf(part);
        return { type: part.type, id, providerMetadata: metadata };
      }
      case 'tool-input-start':
        return part.providerExecuted ? undefined : { type: part.type, id: part.id, toolName: part.toolName };
      case 'tool-input-delta':
        this.outputCharacters += part.delta.length;
        return { type: part.type, id: part.id, delta: part.delta };
      case 'tool-input-end':
        return { type: part.type, id: part.id };
      case 'tool-call': {
        if (part.providerExecuted) return undefined;
        this.toolCalls += 1;
        const { type, toolCallId, toolName, providerMetadata } = part;
        // Some servers send a call without arguments as an empty string.
        return { type, toolCallId, toolName, input: part.input.trim() === '' ? '{}' : part.input, providerMetadata };
      }
      case 'source':
        return part;
      case 'file':
        this.files += 1;
        return { type: 'file', mediaType: part.mediaType, data: fileData(part.data) };
      case 'finish':
        this.finish = part;
        return undefined;
      default:
        return undefined;
    }
  }

  /** Another delta of the same part as the last delta. */
  more(delta: string): ModelPart | undefined {
    if (delta === '' || this.last === undefined) return undefined;
    const { kind, id } = this.last;
    this.outputCharacters += delta.length;
    if (kind === 'text') this.hasText = true;
    return { type: kind === 'text' ? 'text-delta' : 'reasoning-delta', id, delta };
  }

  /** How the answer ended. Throws when it did not end properly: no finish reason, an unknown one, or no content. */
  end(): { finishReason: ModelFinishReason; finish: FinishPart } {
    const finish = this.finish;
    if (finish === undefined) throw new ProviderError('PROVIDER_CUT');
    const { unified, raw } = finish.finishReason;
    // Anthropic's SDK says `other` for a message that stopped without a reason.
    if (unified === 'interrupted' || (unified === 'other' && raw === undefined))
      throw new ProviderError('PROVIDER_CUT');
    if (unified === 'error') throw new ProviderError('PROVIDER_BAD_RESPONSE');
    // Some servers say `stop` beside tool calls, or `tool_calls` without one.
    if (this.toolCalls > 0 && unified === 'stop') return { finishReason: 'tool-calls', finish };
    if (this.toolCalls === 0 && unified === 'tool-calls') throw new ProviderError('PROVIDER_BAD_RESPONSE');
    if (unified === 'stop' && !this.hasText && this.files === 0) throw new ProviderError('PROVIDER_EMPTY_ANSWER');
    return { finishReason: unified, finish };
  }

  /** The open part of a delta or an end. Metadata can come with either: Anthropic's signature comes with a delta. */
  private partOf(part: { id: string; providerMetadata?: SharedV4ProviderMetadata }): OpenPart {
    const open = this.open.get(part.id);
    if (open === undefined) throw new ProviderError('PROVIDER_BAD_RESPONSE');
    open.metadata = part.providerMetadata ?? open.metadata;
    return open;
  }
}

function fileData(data: Extract<LanguageModelV4StreamPart, { type: 'file' }>['data']) {
  if (data.type === 'url') return { url: String(data.url) };
  return { base64: typeof data.data === 'string' ? data.data : Buffer.from(data.data).toString('base64') };
}
