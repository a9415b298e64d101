import { createAwaitHeadStart, createCallModel } from './callModel.ts';
import type { ChatDeps } from './deps.ts';
import { createEndTurn } from './endTurn.ts';
import type { HeadStarts } from './headStarts.ts';
import { createNameThread } from './nameThread.ts';
import { createRunTool } from './runTool.ts';
import { createSummarizeThread } from './summarizeThread.ts';
import { createChatSweeps } from './sweeps.ts';
import { createParking } from './toolCalls.ts';

export function createChatActivities(deps: ChatDeps, headStarts: Pick<HeadStarts, 'take' | 'soon'>) {
  return {
    callModel: createCallModel(deps, headStarts),
    awaitHeadStart: createAwaitHeadStart(headStarts),
    summarizeThread: createSummarizeThread(deps),
    runTool: createRunTool(deps),
    endTurn: createEndTurn(deps),
    nameThread: createNameThread(deps),
    ...createParking(deps),
    ...createChatSweeps(deps),
  };
}
