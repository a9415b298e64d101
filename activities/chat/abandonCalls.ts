import { chatModels } from '../../models/chat/models.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { ChatDeps } from './deps.ts';

/**
 * Ends what the calls of a turn have left running elsewhere, where the turn has ended before them: a worker that was
 * killed could not. Never rejects.
 */
export async function abandonCalls(
  { database, tools, logger }: Pick<ChatDeps, 'database' | 'tools' | 'logger'>,
  turn: Turn,
): Promise<void> {
  try {
    const cut = await chatModels(database).ToolCall.cutOf(turn.id);
    for (const { id: toolCallId, toolName, input } of cut) {
      await tools.abandon(toolName, { turn, toolCallId, input });
    }
  } catch (error) {
    logger.warn({ err: error, turnId: turn.id }, 'What the calls of a turn have left running could not be ended.');
  }
}
