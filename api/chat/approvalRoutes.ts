import { decideToolCall } from '../../models/chat/answerToolCalls.ts';
import { chatModels } from '../../models/chat/models.ts';
import { answer } from '../frame/answer.ts';
import { authorityOf, callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeTurn } from './authorizeThread.ts';
import { presentTurn } from './presentThread.ts';

/** Whether a tool call may run: decided by the turn's user, on any of their devices. */
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
    answer<'decideToolCall'>(
      res,
      200,
      presentTurn(
        turn,
        await chatModels(deps.database).ModelCall.usageOf(turnId),
        await chatModels(deps.database).ToolCall.openOf([turnId]),
      ),
    );
  });

  return router;
}
