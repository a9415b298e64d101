import { DomainError } from '../../base/errors.ts';
import type { Catalogue } from '../../integrations/chat/catalogue.ts';
import type { CompletionBody } from './conversation.ts';

/** A 400 that names the wrong field as a JSON pointer. */
export function refused(code: string, pointer: string, detail: string): DomainError {
  return new DomainError('invalid', code, detail, { errors: [{ pointer, detail }] });
}

/** For a tool message whose call is not among the earlier messages and does not wait for a result. */
export function resultUnknown(index: number): DomainError {
  const detail =
    'No earlier message has a tool call with this id, and no tool call with this id waits for a result from you.';
  return refused('TOOL_RESULT_UNKNOWN', `/messages/${index}/tool_call_id`, detail);
}

/** For the result of a call that the named thread does not have. */
export function callFromElsewhere(index: number): DomainError {
  const detail =
    'The last answer of the named thread has no tool call with this id. ' +
    'To continue another conversation, name no thread.';
  return refused('TOOL_RESULT_UNKNOWN', `/messages/${index}/tool_call_id`, detail);
}

export function resultMissing(callIds: readonly string[]): DomainError {
  const detail = `Each tool call needs a result. Add results for ${callIds.join(', ').slice(0, 1_000)}.`;
  return refused('TOOL_RESULT_MISSING', '/messages', detail);
}

/** For a model that cannot chat: 404, with what can be done instead. */
export function modelUnknown({ embeddings }: Pick<Catalogue, 'embeddings'>, modelId: string): DomainError {
  const all = 'GET /v1/models lists the available models.';
  return embeddings.some(({ id }) => id === modelId)
    ? unknown(`This model makes embeddings and answers no chats: use it with POST /v1/embeddings. ${all}`)
    : unknown(`There is no such model. ${all}`);
}

/** For a model that makes no embeddings: 404, with the models that do. */
export function embeddingModelUnknown({ embeddings, find }: Catalogue, modelId: string): DomainError {
  const what =
    find(modelId) === undefined
      ? 'There is no such model for embeddings.'
      : 'This model answers chats and makes no embeddings.';
  const ids = embeddings.map(({ id }) => id).join(', ');
  return unknown(
    ids === ''
      ? `${what} No model makes embeddings here. The operator names some in ATRIUM_COMPATIBLE_EMBEDDING_MODELS, or ` +
          'as embeddingModels in ATRIUM_MODELS_FILE.'
      : `${what} Available are: ${ids.slice(0, 1_000)}.`,
  );
}

function unknown(detail: string): DomainError {
  return new DomainError('notFound', 'MODEL_UNKNOWN', detail, { errors: [{ pointer: '/model', detail }] });
}

/** Fields that must not be ignored, with a check for the values that ask for nothing. */
const notHere: Record<string, (value: unknown) => boolean> = {
  n: (value) => value === 1,
  logprobs: (value) => value === false,
  top_logprobs: (value) => value === 0,
  logit_bias: (value) => Object.keys(value as object).length === 0,
  modalities: (value) => Array.isArray(value) && value.every((one) => one === 'text'),
  audio: () => false,
  functions: () => false,
  function_call: () => false,
  web_search_options: () => false,
};

/** Refuses fields that a turn cannot honour: 400 `FIELD_UNSUPPORTED`. */
export function refuseUnsupported(body: CompletionBody): void {
  for (const [name, asksNothing] of Object.entries(notHere)) {
    const value = (body as Record<string, unknown>)[name] ?? null;
    if (value !== null && !asksNothing(value)) {
      const detail = name === 'n' ? 'Only n: 1 is supported here.' : `\`${name}\` is not supported here.`;
      throw refused('FIELD_UNSUPPORTED', `/${name}`, detail);
    }
  }
}
