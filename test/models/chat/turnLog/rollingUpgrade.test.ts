import { endTurn } from '../../../../models/chat/endTurn.ts';
import type { Turn } from '../../../../models/chat/turn.ts';
import { encodeChunks, WriterFencedError } from '../../../../models/chat/turnLog/entry.ts';
import type { TurnLog } from '../../../../models/chat/turnLog/turnLog.ts';
import { transaction } from '../../../../models/database/database.ts';
import { execute, insert, select } from '../../../../models/database/sql.ts';
import { buildTurn, buildTurnLog, buildWriter, delta, readLog, textOf } from '../../../builders/turnLog.ts';
import { createTestEnvironment, type TestEnvironment } from '../../../support/environment.ts';

// During a rolling upgrade, processes of the version before write to the same turns. They rely on `turns.next_seq` and
// move it with each append. This version no longer moves it for a token.

let environment: TestEnvironment;
let turnLog: TurnLog;
let turn: Turn;

beforeAll(async () => {
  environment = await createTestEnvironment();
});

beforeEach(async () => {
  ({ turnLog } = buildTurnLog(environment.database));
  turn = await buildTurn(environment.database);
});

afterEach(() => turnLog.close());
afterAll(() => environment.close());

interface OldFence {
  writerEpoch: number;
  nextSeq: number;
  terminal: number;
}

/** Appends as the version before does: as a writer with an epoch, or in a transaction without one. */
function appendAsBefore(text: string, epoch?: number): Promise<void> {
  return transaction(environment.database, async (tx) => {
    const sql = 'SELECT writer_epoch, next_seq, terminal FROM turns WHERE id = ? FOR UPDATE';
    const [fence] = await select<OldFence>(tx, sql, [turn.id]);
    if (fence === undefined || fence.terminal === 1) throw new WriterFencedError(turn.id);
    if (epoch !== undefined && fence.writerEpoch !== epoch) throw new WriterFencedError(turn.id);
    const seq = fence.nextSeq;
    const chunks = encodeChunks([delta('old', text)]);
    const row = { turn_id: turn.id, first_seq: seq, last_seq: seq, writer_epoch: epoch ?? 0, chunks };
    await insert(tx, 'turn_segments', row);
    await execute(tx, 'UPDATE turns SET next_seq = ? WHERE id = ?', [seq + 1, turn.id]);
  });
}

async function takeEpochAsBefore(): Promise<number> {
  const { pool } = environment.database;
  await pool.query('UPDATE turns SET writer_epoch = writer_epoch + 1 WHERE id = ? AND terminal = 0', [turn.id]);
  const [fence] = await select<OldFence>(pool, 'SELECT writer_epoch FROM turns WHERE id = ?', [turn.id]);
  return fence?.writerEpoch ?? 0;
}

it('A new writer continues after the chunks of an older process and fences its writer off', async () => {
  const epoch = await takeEpochAsBefore();
  await appendAsBefore('one ', epoch);
  await appendAsBefore('two ', epoch);
  const writer = await buildWriter(environment.database, turnLog, turn);
  await expect(appendAsBefore('too late', epoch)).rejects.toThrow(WriterFencedError);
  writer.append(delta('new', 'three'));
  await writer.flush();
  expect(textOf(await readLog(turnLog, turn.id))).toBe('one two three');
});

it('A new writer is fenced off by an older process that takes over the turn', async () => {
  const writer = await buildWriter(environment.database, turnLog, turn);
  const epoch = await takeEpochAsBefore();
  await appendAsBefore('theirs', epoch);
  writer.append(delta('new', 'ours'));
  await expect(writer.flush()).rejects.toThrow(WriterFencedError);
  expect(textOf(await readLog(turnLog, turn.id))).toBe('theirs');
});

it('An older process cannot overwrite new tokens, and can append again after the turn row has moved', async () => {
  const writer = await buildWriter(environment.database, turnLog, turn);
  for (const word of ['one ', 'two ', 'three ']) {
    writer.append(delta('new', word));
    await writer.flush();
  }
  await expect(appendAsBefore('lost')).rejects.toThrow('Duplicate entry');
  const step = [{ type: 'finish-step' }] as const;
  await transaction(environment.database, (tx) => turnLog.appendIn(tx, turn.id, [...step]));
  await appendAsBefore('four ');
  writer.append(delta('new', 'five'));
  await writer.flush();
  expect(textOf(await readLog(turnLog, turn.id))).toBe('one two three four five');
  await endTurn({ database: environment.database, turnLog }, turn.id, { status: 'stopped' });
  await expect(appendAsBefore('after the end')).rejects.toThrow(WriterFencedError);
});
