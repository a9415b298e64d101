import type { Response } from 'express';
import { DomainError } from '../../base/errors.ts';
import type { Usage } from '../../models/chat/turnLog/chunks.ts';
import { answer } from '../frame/answer.ts';
import { type AnswerEnd, AnswerState, type MadeCall, type OwnTools } from './answerState.ts';
import type { Listener, Telling } from './followTurn.ts';
import { presentCompletion } from './presentCompletion.ts';
import { turnFailure } from './presentError.ts';

export interface Answering {
  telling: Telling;
  ownTools: OwnTools;
  /** The usage of the model calls of this answer. */
  usage(): Promise<Usage>;
  /** Called when the client has received the whole answer. */
  onRead(seq: number): void;
  /** Answers with an error. */
  fail(error: unknown): void;
}

/** Collects the answer and sends it when it is complete. */
export function wholeCompletion(res: Response, { telling, ownTools, usage, onRead, fail }: Answering): Listener {
  const state = new AnswerState(ownTools);
  const texts = new Map<string, string>();
  const calls: MadeCall[] = [];
  let reasoning = '';
  let end: AnswerEnd | undefined;

  async function send(seq: number): Promise<void> {
    if (end === undefined || 'failure' in end) {
      // OpenAI's clients would repeat the request, and with it the turn's side effects.
      res.set('x-should-retry', 'false').once('finish', () => onRead(seq));
      throw turnFailure(end?.failure);
    }
    const text = [...texts.values()].join('');
    const body = presentCompletion(telling.turn, { text, reasoning, calls, finish: end.finish }, await usage());
    res.once('finish', () => onRead(seq));
    answer<'createChatCompletion'>(res, 200, body);
  }

  return {
    onChunk(chunk) {
      const said = state.read(chunk);
      if (said.text) texts.set(said.text.part, (texts.get(said.text.part) ?? '') + said.text.delta);
      reasoning += said.reasoning ?? '';
      if (said.call) calls.push(said.call);
      for (const part of said.discarded ?? []) texts.delete(part);
      end = said.end;
      return end !== undefined;
    },
    onEnd: (seq) => void send(seq).catch(fail),
    onError: fail,
    onLeave: () => fail(interrupted()),
  };
}

/** OpenAI's clients repeat the request by themselves, and get the answer of the same turn. */
function interrupted(): DomainError {
  const detail = 'Waiting for the answer was cut off. The turn continues: send the request again.';
  return new DomainError('unavailable', 'ANSWER_INTERRUPTED', detail, { retryAfterSeconds: 1 });
}
