import { DomainError } from '../../base/errors.ts';
import type { CatalogueModel } from '../../integrations/chat/catalogue.ts';
import { assistantPosition } from '../../models/chat/message.ts';
import { summaryStep } from '../../models/chat/modelCall.ts';
import { chatModels } from '../../models/chat/models.ts';
import { chatSettingsOf } from '../../models/chat/settings.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { Database } from '../../models/database/database.ts';
import { keepAlive } from '../keepAlive.ts';
import { askAside } from './askAside.ts';
import { promptBudget, tokensOfText } from './context/budget.ts';
import { readHistory, roughTokensOf } from './context/history.ts';
import { summaryPrompt, transcriptLine } from './context/summary.ts';
import type { ChatDeps } from './deps.ts';
import { offeredTools } from './offeredTools.ts';
import { type FailedCall, failedCall } from './stepResult.ts';

export interface SummarizeThreadInput {
  turnId: string;
  modelId: string;
  squeeze: number;
}

export type SummarizeThreadResult =
  | { kind: 'summarized' }
  | { kind: 'stopped' }
  | { kind: 'alreadyEnded' }
  | FailedCall;

/** The share of a prompt that stays verbatim after a summary, and the share that a summary is made from. */
const keptShare = 0.4;
const summarizedShare = 0.6;
const messagesPerLook = 200;
const minMessageTokens = 100;
const maxSummaryTokens = 4_000;
const wordsPerToken = 0.6;

/**
 * Makes room in a long thread: summarises its oldest turns that have no summary yet, as many as one model call can
 * read. Each call makes progress, and its summary is stored before the next one; a crash loses one call at most.
 */
export function createSummarizeThread(deps: ChatDeps) {
  return async function summarizeThread(input: SummarizeThreadInput): Promise<SummarizeThreadResult> {
    const { turnId, modelId, squeeze } = input;
    const turn = await chatModels(deps.database).Turn.findByPk(turnId);
    if (turn === null || turn.isTerminal) return { kind: 'alreadyEnded' };
    if (turn.stopRequestedAt !== null) return { kind: 'stopped' };
    using heartbeat = keepAlive();
    using stop = deps.stopWatch.watch(turnId);
    try {
      const { model } = deps.catalogue.resolve({ modelId });
      const [{ maxContextTokens }, tools] = await Promise.all([
        chatSettingsOf(deps.database, turn.spaceId),
        deps.tools.offered(turn),
      ]);
      const { tokens: toolTokens } = offeredTools(tools);
      const budget = promptBudget(model, { maxContextTokens, squeeze, toolTokens });
      const abortSignal = AbortSignal.any([heartbeat.cancelled, stop.signal]);
      await summarize(deps, { turn, model, budget, abortSignal });
      return { kind: 'summarized' };
    } catch (error) {
      if (stop.signal.aborted || error instanceof Stopped) return { kind: 'stopped' };
      heartbeat.cancelled.throwIfAborted();
      return failedCall(deps, turn, modelId, error);
    }
  };
}

class Stopped extends Error {}

async function summarize(
  deps: ChatDeps,
  options: { turn: Turn; model: CatalogueModel; budget: number; abortSignal: AbortSignal },
): Promise<void> {
  const { turn, model, budget, abortSignal } = options;
  const { ThreadSummary } = chatModels(deps.database);
  const step = summaryStep(await ThreadSummary.countOf(turn.id));
  const [earlier, keepFrom] = await Promise.all([
    ThreadSummary.before(turn.threadId, turn.ordinal),
    firstKeptOrdinal(deps.database, turn, budget),
  ]);
  const room = budget * summarizedShare - tokensOfText(earlier?.summary ?? '');
  const { lines, upToOrdinal } = await readLines(
    deps.database,
    turn.threadId,
    earlier?.upToOrdinal ?? 0,
    keepFrom,
    room,
  );
  if (upToOrdinal === undefined) {
    throw new DomainError('unprocessable', 'CONTEXT_TOO_LONG', 'The message is too long for this model.');
  }
  const maxOutputTokens = Math.max(64, Math.min(maxSummaryTokens, Math.floor(budget / 10)));
  const prompt = summaryPrompt(earlier?.summary, lines, Math.floor(maxOutputTokens * wordsPerToken));
  await askAside(deps, { turn, step, model, prompt, maxOutputTokens, abortSignal }, async (tx, summary) => {
    // An edit of the thread stops its turns under this lock: replaced messages must not come back in a summary.
    const locked = await chatModels(tx).Turn.lock(turn.id, tx);
    if (locked === null || locked.isTerminal || locked.stopRequestedAt !== null) throw new Stopped();
    await ThreadSummary.add(tx, { threadId: turn.threadId, upToOrdinal, turnId: turn.id, modelId: model.id, summary });
  });
}

/**
 * The first turn that stays verbatim: whole turns are kept from the end, but never everything before the turn. A turn
 * that continues with tool results has no message of its own: it needs the turn that made the calls.
 */
async function firstKeptOrdinal(database: Database, turn: Turn, budget: number): Promise<number> {
  const { messages, isWhole } = await readHistory(database, turn, budget * keptShare);
  const turns = [...Map.groupBy(messages.toReversed(), ({ turnOrdinal }) => turnOrdinal)];
  let tokens = 0;
  const last = turns[0]?.[0] ?? turn.ordinal;
  let first = last;
  for (const [ordinal, ofTurn] of turns) {
    for (const { parts } of ofTurn) tokens += roughTokensOf(parts);
    if (tokens > budget * keptShare) return first;
    first = ordinal;
  }
  if (!isWhole) return first;
  // By the estimate all turns would fit, but the prompt was too long: files weigh more than estimated. Summarise half
  // of the turns.
  return turns[Math.floor(turns.length / 2) - 1]?.[0] ?? last;
}

/** The oldest turns between two places, as lines: as many as there is room for, and at least one. */
async function readLines(
  database: Database,
  threadId: string,
  afterOrdinal: number,
  beforeOrdinal: number,
  roomTokens: number,
) {
  const lines: string[] = [];
  let upToOrdinal: number | undefined;
  let tokens = 0;
  for (;;) {
    const after = { turnOrdinal: upToOrdinal ?? afterOrdinal, position: assistantPosition };
    const { messages: page, hasMore } = await chatModels(database).Message.page({
      threadId,
      after,
      upToOrdinal: beforeOrdinal - 1,
      limit: messagesPerLook,
    });
    const turns = [...Map.groupBy(page, ({ turnOrdinal }) => turnOrdinal)];
    // The page may end within its last turn, whose answer is then on the next one.
    const isCut = hasMore && page.at(-1)?.position !== assistantPosition;
    for (const [ordinal, ofTurn] of isCut ? turns.slice(0, -1) : turns) {
      const made = ofTurn.map((message) => transcriptLine(message, Math.max(minMessageTokens, roomTokens / 2)));
      tokens += made.reduce((sum, line) => sum + tokensOfText(line), 0);
      if (upToOrdinal !== undefined && tokens > roomTokens) return { lines, upToOrdinal };
      lines.push(...made);
      upToOrdinal = ordinal;
    }
    if (!hasMore) return { lines, upToOrdinal };
  }
}
