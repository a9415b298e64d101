import { createAwaitHeadStart, createCallModel } from './callModel.ts';
import type { ChatDeps } from './deps.ts';
import { createEndTurn } from './endTurn.ts';
import type { HeadStarts } from './headStarts.ts';
import { createNameThread } from './nameThread.ts';
import { createRunTool } from './runTool.ts';
import { createSummarizeThread } from './summarizeThread.ts';
import { chatSweeps, createChatSweeps } from './sweeps.ts';
import { createParking } from './toolCalls.ts';

/** `headStarts` are the first model calls that this process has begun before their workflows. */
function createChatActivities(deps: ChatDeps & { headStarts: Pick<HeadStarts, 'take' | 'soon'> }) {
  const { headStarts } = deps;
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

export const chat = { create: createChatActivities, sweeps: chatSweeps };
