import type { Turn } from '../../models/chat/turn.ts';
import { type CompletionRequest, contextOf, offersOwn } from '../../models/chat/turnContext.ts';
import type { FinishReason, UiChunk } from '../../models/chat/turnLog/chunks.ts';
import type { Database } from '../../models/database/database.ts';

type TextDelta = Extract<UiChunk, { delta: string }>;
export type MadeCall = Extract<UiChunk, { type: 'tool-input-available' }>;

export type CompletionFinish = 'stop' | 'length' | 'tool_calls' | 'content_filter';

/** How an answer ended. */
export type AnswerEnd = { finish: CompletionFinish } | { failure: { code: string; detail: string } };

/** A turn's chunk in the terms of a completion. */
export interface Said {
  text?: { part: string; delta: string };
  reasoning?: string;
  call?: MadeCall;
  /** Ids of parts that were sent and are void: the model says them again. */
  discarded?: string[];
  end?: AnswerEnd;
}

const finishes: Partial<Record<FinishReason, CompletionFinish>> = {
  length: 'length',
  'tool-calls': 'tool_calls',
  'content-filter': 'content_filter',
};

/** Whether a step of the turn offers the client's function of this name. */
export type OwnTools = (name: string, step: number) => boolean;

/** Between the texts of two steps. */
const stepBreak = '\n\n';

/**
 * Reads a turn's log as one message of a completion: the texts of its steps, one after the other, and the calls of the
 * client's own tools. Calls of the space's tools are left out.
 */
export class AnswerState {
  readonly #own: OwnTools;
  /** The step of each part of the text. */
  readonly #texts = new Map<string, number>();
  #step = 0;

  constructor(ownTools: OwnTools) {
    this.#own = ownTools;
  }

  read(chunk: UiChunk): Said {
    switch (chunk.type) {
      case 'start-step':
        this.#step++;
        return {};
      case 'text-delta':
        return { text: { part: chunk.id, delta: this.#separated(chunk) } };
      case 'reasoning-delta':
        return { reasoning: chunk.delta };
      case 'tool-input-available':
        return this.#own(chunk.toolName, this.#step - 1) ? { call: chunk } : {};
      case 'data-attempt':
        return { discarded: chunk.data.discard.filter((id) => this.#texts.delete(id)) };
      case 'finish':
        return finishOf(chunk);
      case 'abort':
        return { end: { finish: 'stop' } };
      case 'error':
        return { end: { failure: { code: chunk.code, detail: chunk.errorText } } };
      default:
        return {};
    }
  }

  #separated({ id, delta }: TextDelta): string {
    if (this.#texts.has(id)) return delta;
    const steps = [...this.#texts.values()];
    this.#texts.set(id, this.#step);
    return steps.length > 0 && !steps.includes(this.#step) ? stepBreak + delta : delta;
  }
}

/** A turn that waits for a person's approval continues afterwards. */
function finishOf({ finishReason, messageMetadata }: Extract<UiChunk, { type: 'finish' }>): Said {
  if (messageMetadata?.status === 'waiting') return {};
  return { end: { finish: finishes[finishReason] ?? 'stop' } };
}

/** The client's functions that the step of an answer offers. The client gets no other calls. */
export async function ownToolsOf(database: Database, turn: Turn): Promise<OwnTools> {
  const { clientTools = [], completion = {} } = ((await contextOf(database, turn)) ?? {}) as OwnContext;
  const names = new Set(clientTools.map(({ name }) => name));
  return (name, step) => names.has(name) && offersOwn(completion, name, step);
}

interface OwnContext {
  clientTools?: { name: string }[];
  completion?: CompletionRequest;
}
