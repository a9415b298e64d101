import type { Response } from 'express';
import { loggable } from '../../telemetry/loggable.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { describeFailure } from '../frame/failures.ts';
import { whenClosed } from '../frame/goneOf.ts';
import { doneEvent, drained, eventStreamHeaders, maxBacklogBytes } from '../frame/sse.ts';
import { type AnswerEnd, AnswerState, type Said } from './answerState.ts';
import type { Listener } from './followTurn.ts';
import { type Delta, presentCall, presentChunk, presentUsageChunk } from './presentCompletion.ts';
import { presentError, turnFailure } from './presentError.ts';
import type { Answering } from './wholeCompletion.ts';

/** Streams the answer as OpenAI does. */
export function streamCompletion(
  res: Response,
  { telling, ownTools, usage, onRead }: Answering,
  { deps, withUsage }: { deps: RouteDeps; withUsage: boolean },
): Listener {
  const { turn } = telling;
  const state = new AnswerState(ownTools);
  let calls = 0;
  let end: AnswerEnd | undefined;
  res.writeHead(200, eventStreamHeaders);
  whenClosed(res, deps.meters.streamOpened());
  const beat = setInterval(() => res.write(': hb\n\n'), deps.config.chat.streams.heartbeatMs);
  whenClosed(res, () => clearInterval(beat));
  send({ role: 'assistant', content: '' });

  function write(data: object): void {
    if (res.writableLength > maxBacklogBytes) res.destroy();
    else res.write(`data: ${JSON.stringify(data)}\n\n`);
  }

  function send(delta: Delta): void {
    write(presentChunk(turn, delta, null, withUsage));
  }

  function tell({ text, reasoning, call }: Said): void {
    if (text) send({ content: text.delta });
    if (reasoning) send({ reasoning_content: reasoning });
    if (call) send({ tool_calls: [{ index: calls++, ...presentCall(call) }] });
  }

  function fail(error: unknown, seq: number): void {
    const failure = describeFailure(error);
    res.locals.failureCode = failure.code;
    if (failure.status === 500) deps.logger.error({ err: loggable(error), turnId: turn.id }, failure.code);
    write(presentError(failure));
    res.end(() => onRead(seq));
  }

  async function finish(seq: number): Promise<void> {
    if (end === undefined || 'failure' in end) throw turnFailure(end?.failure);
    write(presentChunk(turn, {}, end.finish, withUsage));
    if (withUsage) write(presentUsageChunk(turn, await usage()));
    res.end(doneEvent, () => onRead(seq));
  }

  return {
    onChunk(chunk) {
      const said = state.read(chunk);
      tell(said);
      // Sent text cannot be taken back and must not appear twice, so the stream ends with an error.
      end = said.discarded?.length ? { failure: begunAgain } : said.end;
      return end !== undefined;
    },
    ready: () => drained(res),
    onEnd: (seq) => void finish(seq).catch((error: unknown) => fail(error, seq)),
    onError(error) {
      deps.logger.warn({ err: error, turnId: turn.id }, 'A stream broke off.');
      res.destroy();
    },
    // The stream breaks off without an end, so the client knows that there is more.
    onLeave: () => res.destroy(),
  };
}

const begunAgain = {
  code: 'ANSWER_BEGUN_AGAIN',
  detail: 'The model was cut off and answers again. The turn continues: read the answer in its thread.',
};
