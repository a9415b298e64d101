import type { FakeDelta } from './script.ts';
import { event, type Wire } from './wire.ts';

const reasons = { stop: 'stop', length: 'length', 'tool-calls': 'tool_calls', 'content-filter': 'content_filter' };

/** `POST /chat/completions`, streamed like OpenAI and compatible servers do. */
export function chatCompletionsWire(id: string, model: string): Wire {
  const envelope = { id, object: 'chat.completion.chunk', created: 1_700_000_000, model };
  const head = JSON.stringify({ ...envelope, system_fingerprint: 'fp_fake' }).slice(0, -1);
  const chunk = (delta: object, reason: string | null = null) =>
    event({ ...envelope, choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }] });

  return {
    start: () => chunk({ role: 'assistant', content: '' }),
    delta(delta: FakeDelta) {
      switch (delta.kind) {
        case 'text':
          // Written by hand for speed, since tens of thousands of these are sent.
          return `data: ${head},"choices":[{"index":0,"delta":{"content":${JSON.stringify(delta.text)}},"logprobs":null,"finish_reason":null}]}\n\n`;
        case 'reasoning':
          return chunk({ reasoning_content: delta.text });
        case 'toolStart': {
          const call = { name: delta.call.name, arguments: '' };
          return chunk({ tool_calls: [{ index: delta.index, id: delta.call.id, type: 'function', function: call }] });
        }
        case 'toolDelta':
          return chunk({ tool_calls: [{ index: delta.index, function: { arguments: delta.text } }] });
        case 'toolEnd':
          return '';
      }
    },
    finish(reason, usage) {
      const events = reason === null ? '' : chunk({}, reasons[reason]);
      if (usage === null) return `${events}data: [DONE]\n\n`;
      const counted = {
        prompt_tokens: usage.inputTokens,
        completion_tokens: usage.outputTokens,
        total_tokens: usage.inputTokens + usage.outputTokens,
        prompt_tokens_details: { cached_tokens: usage.cachedInputTokens ?? 0 },
        completion_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
      };
      return `${events}${event({ ...envelope, choices: [], usage: counted })}data: [DONE]\n\n`;
    },
    error: () => event({ error: { message: 'The fake server failed.', type: 'server_error', code: null } }),
    errorBody: (status) =>
      JSON.stringify({ error: { message: `The fake provider's own text for ${status}.`, type: 'fake', code: null } }),
  };
}
