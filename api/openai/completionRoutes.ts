import type { Request, Response } from 'express';
import { noteDelivered } from '../../models/chat/completions.ts';
import { chatModels } from '../../models/chat/models.ts';
import { noteSeen } from '../../models/push/receipts.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { ownToolsOf } from './answerState.ts';
import { beginCompletion } from './beginCompletion.ts';
import { followTurn, recallTurn, type Telling } from './followTurn.ts';
import { streamCompletion } from './streamCompletion.ts';
import { type Answering, wholeCompletion } from './wholeCompletion.ts';

/** `POST /v1/chat/completions`: runs a turn and answers in OpenAI's form. */
export function completionRoutes(deps: RouteDeps) {
  const { database, logger } = deps;
  const { ModelCall } = chatModels(database);
  const router = createRouter();

  router.post('/v1/chat/completions', async (req, res, next) => {
    const telling = await beginCompletion(deps, req, callerOf(req), bodyOf<'createChatCompletion'>(req));
    await tell(req, res, telling, next);
  });

  async function tell(req: Request, res: Response, telling: Telling, fail: (error: unknown) => void): Promise<void> {
    const { turn, after } = telling;
    const { stream, stream_options: options } = bodyOf<'createChatCompletion'>(req);
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
