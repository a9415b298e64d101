import type { FakeDelta } from './script.ts';
import { event, type Wire } from './wire.ts';

const reasons = { stop: 'end_turn', length: 'max_tokens', 'tool-calls': 'tool_use', 'content-filter': 'refusal' };

/** `POST /v1/messages` of Anthropic. Content comes in blocks, each of which is opened and closed. */
export function anthropicWire(id: string, model: string): Wire {
  let index = -1;
  let open: string | undefined;

  const named = (data: { type: string; [field: string]: unknown }) => event(data, data.type);
  const close = () => {
    if (open === undefined) return '';
    const signature = { type: 'signature_delta', signature: 'fake-signature' };
    const signed = open === 'reasoning' ? named({ type: 'content_block_delta', index, delta: signature }) : '';
    open = undefined;
    return signed + named({ type: 'content_block_stop', index });
  };
  const block = (kind: string, content_block: object) => {
    if (open === kind) return '';
    const closed = close();
    open = kind;
    index += 1;
    return closed + named({ type: 'content_block_start', index, content_block });
  };
  const delta = (content: object) => named({ type: 'content_block_delta', index, delta: content });

  return {
    start() {
      const usage = { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 };
      const message = { id, type: 'message', role: 'assistant', model, content: [], stop_reason: null, usage };
      return named({ type: 'message_start', message }) + named({ type: 'ping' });
    },
    delta(step: FakeDelta) {
      switch (step.kind) {
        case 'text':
          return block('text', { type: 'text', text: '' }) + delta({ type: 'text_delta', text: step.text });
        case 'reasoning':
          return (
            block('reasoning', { type: 'thinking', thinking: '', signature: '' }) +
            delta({ type: 'thinking_delta', thinking: step.text })
          );
        case 'toolStart':
          return block(`tool-${step.index}`, { type: 'tool_use', id: step.call.id, name: step.call.name, input: {} });
        case 'toolDelta':
          return delta({ type: 'input_json_delta', partial_json: step.text });
        case 'toolEnd':
          return close();
      }
    },
    finish(reason, usage) {
      const closed = close();
      if (reason === null) return closed;
      const cached = usage?.cachedInputTokens ?? 0;
      const counted = {
        input_tokens: (usage?.inputTokens ?? 0) - cached,
        cache_read_input_tokens: cached,
        cache_creation_input_tokens: 0,
        output_tokens: usage?.outputTokens ?? 0,
      };
      const stop = { stop_reason: reasons[reason], stop_sequence: null };
      return closed + named({ type: 'message_delta', delta: stop, usage: counted }) + named({ type: 'message_stop' });
    },
    error: () => event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'error'),
    errorBody(status) {
      const type = status === 429 ? 'rate_limit_error' : status === 529 ? 'overloaded_error' : 'api_error';
      return JSON.stringify({ type: 'error', error: { type, message: `The fake provider's own text for ${status}.` } });
    },
  };
}
