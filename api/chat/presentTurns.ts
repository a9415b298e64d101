import { chatModels } from '../../models/chat/models.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { readLastSeqs } from '../../models/chat/turnLog/tails.ts';
import type { Database } from '../../models/database/database.ts';
import { presentTurn } from './presentThread.ts';

/** Turns with what they have used, what they wait for and where their logs end: one query of each for all of them. */
export async function presentTurns(database: Database, turns: readonly Turn[]) {
  const { ModelCall, ToolCall } = chatModels(database);
  const ids = turns.map(({ id }) => id);
  const [usageOf, calls, lastSeqOf] = await Promise.all([
    ModelCall.usageOfMany(ids),
    ToolCall.openOf(ids),
    readLastSeqs(database, turns),
  ]);
  return turns.map((turn) => presentTurn(turn, { usage: usageOf(turn.id), calls, lastSeq: lastSeqOf(turn.id) }));
}

export async function presentOneTurn(database: Database, turn: Turn) {
  const [presented] = await presentTurns(database, [turn]);
  if (presented === undefined) throw new Error('Unreachable: a turn is presented for each that is given.');
  return presented;
}
