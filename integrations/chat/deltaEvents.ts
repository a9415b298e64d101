export type DeltaKind = 'text' | 'reasoning';

/** The text and reasoning deltas that an SDK emits for one stream event. */
export interface ExpectedDeltas {
  /** In order. */
  deltas: readonly string[];
  /** Set if the event is exactly one delta: the part of the answer that the delta belongs to. */
  plain?: string;
}

/** Predicts what an SDK emits for an event's data; undefined if that is not certain. */
export type EventReader = (data: unknown) => ExpectedDeltas | undefined;

const nothing: ExpectedDeltas = { deltas: [] };

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
const isEmpty = (value: unknown) =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);

function plainDelta(part: string, delta: unknown): ExpectedDeltas | undefined {
  return typeof delta === 'string' ? { deltas: [delta], plain: part } : undefined;
}

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
  const kind: DeltaKind = isEmpty(thought) ? 'text' : 'reasoning';
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
      return isRecord(data.delta) ? readAnthropicDelta(data.delta, `${data.index}`) : undefined;
    default:
      return undefined;
  }
};

function readAnthropicDelta(delta: Record<string, unknown>, block: string): ExpectedDeltas | undefined {
  if (delta.type === 'text_delta') return plainDelta(block, delta.text);
  if (delta.type === 'thinking_delta') return plainDelta(block, delta.thinking);
  // The SDK reports a signature with an empty delta.
  if (delta.type === 'signature_delta') return { deltas: [''] };
  return delta.type === 'input_json_delta' ? nothing : undefined;
}

const responsesWithoutDelta = new Set([
  'response.created',
  'response.queued',
  'response.in_progress',
  'response.output_item.added',
  'response.output_item.done',
  'response.content_part.added',
  'response.content_part.done',
  'response.output_text.done',
  'response.reasoning_summary_part.added',
  'response.reasoning_summary_part.done',
  'response.reasoning_summary_text.done',
  'response.function_call_arguments.delta',
  'response.function_call_arguments.done',
  'response.completed',
  'response.incomplete',
]);

/** An event of OpenAI's `POST /responses`. */
export const readResponsesEvent: EventReader = (data) => {
  if (!isRecord(data) || typeof data.type !== 'string') return undefined;
  if (data.type === 'response.output_text.delta') return plainDelta(`text ${data.item_id}`, data.delta);
  if (data.type === 'response.reasoning_summary_text.delta') {
    return plainDelta(`reasoning ${data.item_id} ${data.summary_index}`, data.delta);
  }
  return responsesWithoutDelta.has(data.type) ? nothing : undefined;
};
