import { newId } from '../../base/ids.ts';
import { acceptMessage, type SendIntent } from '../../models/chat/acceptMessage.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { UiChunk } from '../../models/chat/turnLog/chunks.ts';
import { type CommittedSegment, decodeLines } from '../../models/chat/turnLog/entry.ts';
import { TurnLog } from '../../models/chat/turnLog/turnLog.ts';
import type { TurnWriter } from '../../models/chat/turnLog/turnWriter.ts';
import { type Database, transaction } from '../../models/database/database.ts';

/** A turn log that records the segments passed to its readers. */
export function buildTurnLog(database: Database): { turnLog: TurnLog; told: CommittedSegment[] } {
  const told: CommittedSegment[] = [];
  return { turnLog: new TurnLog({ database, onCommit: (segment) => told.push(segment) }), told };
}

/** A running turn in a new thread. */
export async function buildTurn(database: Database, overrides: Partial<SendIntent> = {}): Promise<Turn> {
  const { turn } = await acceptMessage(database, {
    userId: newId('user'),
    spaceId: newId('space'),
    authority: { scopes: null, apiKeyId: null },
    parts: [{ type: 'text', text: 'Hello', state: 'done' }],
    mode: 'ask',
    modelId: 'demo',
    effort: null,
    notificationPriority: 'default',
    onBusy: 'queue',
    ...overrides,
  });
  return turn;
}

/** A writer with the turn's next epoch. */
export async function buildWriter(database: Database, turnLog: TurnLog, turn: Turn): Promise<TurnWriter> {
  const taken = await transaction(database, (tx) => turnLog.takeEpoch(tx, turn.id));
  if (taken === undefined) throw new Error('The turn has ended.');
  return turnLog.writer({ turnId: turn.id, ...taken });
}

/** The whole log of a turn. Throws if its segments' numbers leave a gap or do not match their chunks. */
export async function readLog(turnLog: TurnLog, turnId: string): Promise<UiChunk[]> {
  const chunks: UiChunk[] = [];
  for (const segment of await turnLog.read(turnId, 0, 100_000)) {
    const decoded = decodeLines(segment.lines);
    if (segment.firstSeq !== chunks.length + 1) {
      throw new Error(`A segment begins at ${segment.firstSeq} after ${chunks.length} chunks.`);
    }
    if (segment.lastSeq - segment.firstSeq + 1 !== decoded.length) throw new Error('A segment miscounts its chunks.');
    chunks.push(...decoded);
  }
  return chunks;
}

/** The text of a log's deltas. */
export function textOf(chunks: UiChunk[]): string {
  return chunks.map((chunk) => (chunk.type === 'text-delta' ? chunk.delta : '')).join('');
}

export function delta(id: string, text: string): UiChunk {
  return { type: 'text-delta', id, delta: text };
}
