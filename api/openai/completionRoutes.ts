import type { Request, Response } from 'express';
import { noteDelivered } from '../../models/chat/completions.ts';
import { chatModels } from '../../models/chat/models.ts';
import { noteSeen } from '../../models/push/receipts.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { releaseBody } from '../frame/middleware/body.ts';
import { bodyOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { ownToolsOf } from './answerState.ts';
import { beginCompletion } from './beginCompletion.ts';
import type { CompletionBody } from './conversation.ts';
import { followTurn, recallTurn, type Telling } from './followTurn.ts';
import { streamCompletion } from './streamCompletion.ts';
import { type Answering, wholeCompletion } from './wholeCompletion.ts';

interface Wish extends Pick<CompletionBody, 'stream'> {
  options: CompletionBody['stream_options'];
  fail(error: unknown): void;
}

/** `POST /v1/chat/completions`: runs a turn and answers in OpenAI's form. */
export function completionRoutes(deps: RouteDeps) {
  const { database, logger } = deps;
  const { ModelCall } = chatModels(database);
  const router = createRouter();

  router.post('/v1/chat/completions', async (req, res, next) => {
    const body = bodyOf<'createChatCompletion'>(req);
    const { stream, stream_options: options } = body;
    const telling = await beginCompletion(deps, req, callerOf(req), body);
    // The answer may take an hour, and the body may have 32 MiB.
    releaseBody(req);
    await tell(req, res, telling, { stream, options, fail: next });
  });

  async function tell(req: Request, res: Response, telling: Telling, wish: Wish): Promise<void> {
    const { turn, after } = telling;
    const { stream, options, fail } = wish;
    const answering: Answering = {
      telling,
      ownTools: await ownToolsOf(database, turn),
      usage: () => ModelCall.usageOf(turn.id, { afterSeq: after }),
      fail,
      onRead(seq) {
        Promise.all([noteSeen(database, turn, seq), noteDelivered(database, turn.id)]).catch((error: unknown) => {
          logger.warn({ err: error, turnId: turn.id }, 'An answer could not be marked as delivered.');
        });
      },
    };
    res.set({ 'x-turn-id': turn.id, 'x-thread-id': turn.threadId });
    const listener =
      stream === true
        ? streamCompletion(res, answering, { deps, withUsage: options?.include_usage === true })
        : wholeCompletion(res, answering);
    const isPurged = turn.isTerminal && turn.logPurgedAt !== null;
    if (!isPurged) followTurn(deps, req, res, telling, listener);
    else await recallTurn(deps, telling, listener);
  }

  return router;
}
