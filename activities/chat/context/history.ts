import { type Message, type StoredPart, userPosition } from '../../../models/chat/message.ts';
import { chatModels } from '../../../models/chat/models.ts';
import type { ThreadSummary } from '../../../models/chat/summary.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import type { Database } from '../../../models/database/database.ts';
import { tokensOfText } from './budget.ts';

const messagesPerLook = 200;
const tokensPerFile = 1_500;
/** There is nothing to summarize before a thread's first turn. */
const firstOrdinal = 1;

export interface History {
  summary: ThreadSummary | null;
  /** Oldest first; the turn's own message is the last. */
  messages: Message[];
  /** False if earlier messages were left out. They would not fit a prompt anyway. */
  isWhole: boolean;
}

/**
 * The thread as a turn sees it: the summary and every message since, up to the turn's own. Later messages belong to
 * queued turns. Reads from the end and stops at the budget, so that the cost depends on the prompt and not on the
 * thread's length.
 */
export async function readHistory(database: Database, turn: Turn, budgetTokens: number): Promise<History> {
  const { Message, ThreadSummary } = chatModels(database);
  const { threadId, ordinal } = turn;
  const summary = ordinal === firstOrdinal ? null : await ThreadSummary.before(threadId, ordinal);
  const messages: Message[] = [];
  let before = { turnOrdinal: ordinal, position: userPosition + 1 };
  for (let tokens = 0; tokens <= budgetTokens; ) {
    const afterOrdinal = summary?.upToOrdinal ?? 0;
    const { messages: earlier, hasMore } = await Message.latest(database, {
      threadId,
      afterOrdinal,
      before,
      limit: messagesPerLook,
    });
    messages.push(...earlier);
    const oldest = earlier.at(-1);
    if (oldest === undefined || !hasMore) {
      return { summary, messages: messages.reverse(), isWhole: true };
    }
    before = { turnOrdinal: oldest.turnOrdinal, position: oldest.position };
    for (const message of earlier) tokens += roughTokensOf(message.parts);
  }
  return { summary, messages: messages.reverse(), isWhole: false };
}

/** An estimate that does not read files. It is good enough to decide where to cut a long thread. */
export function roughTokensOf(parts: readonly StoredPart[]): number {
  let tokens = 0;
  for (const part of parts) {
    if (part.type === 'file' || part.type === 'data-file') tokens += tokensPerFile;
    else if (part.type === 'text' || part.type === 'reasoning') tokens += tokensOfText(part.text);
    else tokens += tokensOfText(JSON.stringify(part));
  }
  return tokens;
}
