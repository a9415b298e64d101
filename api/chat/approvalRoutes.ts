import { decideToolCall } from '../../models/chat/answerToolCalls.ts';
import { answer } from '../frame/answer.ts';
import { authorityOf, callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeTurn } from './authorizeThread.ts';
import { presentOneTurn } from './presentThread.ts';

/** Approvals of tool calls. The turn's user decides, on any of their devices. */
export function approvalRoutes(deps: RouteDeps) {
  const router = createRouter();

  router.post('/chat/turns/:turnId/approvals/:toolCallId', async (req, res) => {
    const { turnId, toolCallId } = pathOf<'decideToolCall'>(req);
    const caller = callerOf(req);
    const turn = await authorizeTurn(deps, caller, turnId);
    const { approved } = bodyOf<'decideToolCall'>(req);
    await decideToolCall(deps, { turnId, toolCallId, approved, by: authorityOf(caller) });
    void deps.launcher.toolsAnswered(turnId);
    await turn.reload();
    answer<'decideToolCall'>(res, 200, await presentOneTurn(deps.database, turn));
  });

  return router;
}
