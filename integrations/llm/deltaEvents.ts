export type DeltaKind = 'text' | 'reasoning';

/** What an SDK makes of one event of a stream, as far as text and reasoning go. */
export interface ExpectedDeltas {
  /** The deltas it emits for it, in order. */
  deltas: readonly string[];
  /** Set when one delta of this kind is all that the event is. */
  plain?: DeltaKind;
}

/** Says what an SDK makes of an event's data, or undefined where that is not certain. */
export type EventReader = (data: unknown) => ExpectedDeltas | undefined;

const nothing: ExpectedDeltas = { deltas: [] };

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
const isEmpty = (value: unknown) =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);

/** A chunk of `POST /chat/completions`. */
export const readChatEvent: EventReader = (data) => {
  if (!isRecord(data) || 'error' in data || !Array.isArray(data.choices)) return undefined;
  if (data.choices.length === 0) return nothing;
  const choice: unknown = data.choices[0];
  if (data.choices.length > 1 || !isRecord(choice)) return undefined;
  if (!isRecord(choice.delta)) return isEmpty(choice.delta) ? nothing : undefined;

  const { role, content, reasoning_content, reasoning, tool_calls, refusal, ...others } = choice.delta;
  const thought = reasoning_content ?? reasoning;
  if (!isEmpty(refusal)) return undefined;
  if (isEmpty(content) && isEmpty(thought)) return nothing;
  const kind = isEmpty(thought) ? 'text' : 'reasoning';
  const delta = kind === 'text' ? content : thought;
  if (typeof delta !== 'string' || !(isEmpty(content) || isEmpty(thought))) return undefined;
  const bare = isEmpty(tool_calls) && Object.values(others).every(isEmpty);
  const plain = bare && isEmpty(choice.finish_reason) && isEmpty(data.usage);
  return plain ? { deltas: [delta], plain: kind } : { deltas: [delta] };
};

/** An event of Anthropic's `POST /messages`. */
export const readAnthropicEvent: EventReader = (data) => {
  if (!isRecord(data)) return undefined;
  switch (data.type) {
    case 'ping':
    case 'message_stop':
    case 'message_delta':
    case 'content_block_stop':
      return nothing;
    case 'message_start':
      return isRecord(data.message) && isEmpty(data.message.content) ? nothing : undefined;
    case 'content_block_start': {
      const block = isRecord(data.content_block) ? data.content_block : {};
      const begun = isEmpty(block.text) && isEmpty(block.thinking);
      return begun && ['text', 'thinking', 'tool_use'].includes(String(block.type)) ? nothing : undefined;
    }
    case 'content_block_delta':
      return isRecord(data.delta) ? readAnthropicDelta(data.delta) : undefined;
    default:
      return undefined;
  }
};

function readAnthropicDelta(delta: Record<string, unknown>): ExpectedDeltas | undefined {
  if (delta.type === 'text_delta' && typeof delta.text === 'string') return { deltas: [delta.text], plain: 'text' };
  if (delta.type === 'thinking_delta' && typeof delta.thinking === 'string') {
    return { deltas: [delta.thinking], plain: 'reasoning' };
  }
  // The SDK reports a signature with an empty delta.
  if (delta.type === 'signature_delta') return { deltas: [''] };
  return delta.type === 'input_json_delta' ? nothing : undefined;
}
