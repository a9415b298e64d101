import type { FakeDelta, FakeUsage } from './script.ts';
import { event, type Wire } from './wire.ts';

type Item = { type: string; id: string; [field: string]: unknown };

/** `POST /responses` of OpenAI. An answer is a list of items, each of which is added, filled and completed. */
export function responsesWire(id: string, model: string): Wire {
  let sequence = 0;
  let outputIndex = -1;
  let open: Item | undefined;
  let callArguments = '';

  const send = (data: { type: string; [field: string]: unknown }) =>
    event({ ...data, sequence_number: sequence++ }, data.type);
  const response = (status: string, more: object = {}) => ({
    id,
    object: 'response',
    created_at: 1_700_000_000,
    model,
    status,
    ...more,
  });
  const add = (item: Item) => {
    const closed = close();
    open = item;
    outputIndex += 1;
    return closed + send({ type: 'response.output_item.added', output_index: outputIndex, item });
  };
  const close = () => {
    if (open === undefined) return '';
    const item = open;
    open = undefined;
    const part = item.type === 'reasoning' ? summaryPart('done', item.id) : '';
    return part + send({ type: 'response.output_item.done', output_index: outputIndex, item });
  };
  const summaryPart = (step: 'added' | 'done', item_id: string) =>
    send({
      type: `response.reasoning_summary_part.${step}`,
      item_id,
      summary_index: 0,
      part: { type: 'summary_text', text: '' },
    });

  return {
    start: () =>
      send({ type: 'response.created', response: response('in_progress') }) +
      send({ type: 'response.in_progress', response: response('in_progress') }),
    delta(step: FakeDelta) {
      switch (step.kind) {
        case 'text': {
          const item_id = `msg_${id}`;
          const opened =
            open?.type === 'message' ? '' : add({ type: 'message', id: item_id, role: 'assistant', content: [] });
          return (
            opened +
            send({
              type: 'response.output_text.delta',
              item_id,
              output_index: outputIndex,
              content_index: 0,
              delta: step.text,
              logprobs: [],
            })
          );
        }
        case 'reasoning': {
          const item_id = `rs_${id}`;
          const item = { type: 'reasoning', id: item_id, summary: [], encrypted_content: 'fake-encrypted' };
          const opened = open?.type === 'reasoning' ? '' : add(item) + summaryPart('added', item_id);
          return (
            opened +
            send({ type: 'response.reasoning_summary_text.delta', item_id, summary_index: 0, delta: step.text })
          );
        }
        case 'toolStart': {
          callArguments = '';
          const { id: call_id, name } = step.call;
          return add({
            type: 'function_call',
            id: `fc_${call_id}`,
            call_id,
            name,
            arguments: '',
            status: 'in_progress',
          });
        }
        case 'toolDelta':
          callArguments += step.text;
          return send({
            type: 'response.function_call_arguments.delta',
            item_id: open?.id,
            output_index: outputIndex,
            delta: step.text,
          });
        case 'toolEnd':
          if (open) open = { ...open, arguments: callArguments, status: 'completed' };
          return (
            send({
              type: 'response.function_call_arguments.done',
              item_id: open?.id,
              output_index: outputIndex,
              arguments: callArguments,
            }) + close()
          );
      }
    },
    finish(reason, usage) {
      const closed = close();
      if (reason === null) return closed;
      const counted = usage === null ? {} : { usage: responsesUsage(usage) };
      if (reason === 'length' || reason === 'content-filter') {
        const why = { reason: reason === 'length' ? 'max_output_tokens' : 'content_filter' };
        return (
          closed +
          send({
            type: 'response.incomplete',
            response: response('incomplete', { incomplete_details: why, ...counted }),
          })
        );
      }
      return (
        closed +
        send({ type: 'response.completed', response: response('completed', { incomplete_details: null, ...counted }) })
      );
    },
    error: () =>
      send({
        type: 'response.failed',
        response: response('failed', { error: { code: 'server_error', message: 'The fake server failed.' } }),
      }),
    errorBody: (status) =>
      JSON.stringify({ error: { message: `The fake provider's own text for ${status}.`, type: 'fake', code: null } }),
  };
}

function responsesUsage(usage: FakeUsage) {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedInputTokens ?? 0 },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}
