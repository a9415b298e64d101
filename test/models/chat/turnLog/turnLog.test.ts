import type { PoolConnection } from 'mysql2/promise';
import { endTurn } from '../../../../models/chat/endTurn.ts';
import { SegmentTooLargeError, WriterFencedError } from '../../../../models/chat/turnLog/entry.ts';
import { transaction } from '../../../../models/database/database.ts';
import { buildTurn, buildTurnLog, buildWriter, delta, readLog, textOf } from '../../../builders/turnLog.ts';
import { createTestEnvironment, type TestEnvironment } from '../../../support/environment.ts';
import { type Statement, sqlOf } from '../../../support/recordStatements.ts';
import { waitFor } from '../../../support/waitFor.ts';

let environment: TestEnvironment;

beforeAll(async () => {
  environment = await createTestEnvironment();
});

afterAll(async () => {
  await environment.close();
});

describe('The group committer', () => {
  it('Chunks of many turns are numbered without a gap, and only committed chunks are announced', async () => {
    const { database } = environment;
    const { turnLog, told } = buildTurnLog(database);
    const turns = await Promise.all(Array.from({ length: 20 }, () => buildTurn(database)));
    const writers = await Promise.all(turns.map((turn) => buildWriter(database, turnLog, turn)));
    for (let word = 0; word < 50; word++) {
      // Alternates two parts, so that no two deltas are joined.
      for (const writer of writers) writer.append(delta(`p${word % 2}`, `w${word} `));
      if (word % 10 === 0) await Promise.all(writers.map((writer) => writer.flush()));
    }
    await Promise.all(writers.map((writer) => writer.flush()));

    const expected = Array.from({ length: 50 }, (_, word) => `w${word} `).join('');
    for (const turn of turns) {
      const log = await readLog(turnLog, turn.id);
      expect(textOf(log)).toBe(expected);
      const heard = told.filter(({ turnId }) => turnId === turn.id).map(({ lines }) => lines);
      expect(heard.join('\n').split('\n')).toEqual(log.slice(2).map((chunk) => JSON.stringify(chunk)));
    }
    await turnLog.close();
  });

  it('Waiting deltas of one part are joined without losing text', async () => {
    const { database } = environment;
    const { turnLog } = buildTurnLog(database);
    const turn = await buildTurn(database);
    const writer = await buildWriter(database, turnLog, turn);
    for (let word = 0; word < 1_000; word++) writer.append(delta('p', `w${word} `));
    await writer.flush();
    const log = await readLog(turnLog, turn.id);
    expect(textOf(log)).toBe(Array.from({ length: 1_000 }, (_, word) => `w${word} `).join(''));
    expect(log.length).toBeLessThan(100);
    await turnLog.close();
  });

  it('A writer of an old epoch cannot write, and writers of other turns are not affected', async () => {
    const { database } = environment;
    const { turnLog } = buildTurnLog(database);
    const [contested, neighbour] = [await buildTurn(database), await buildTurn(database)];
    const old = await buildWriter(database, turnLog, contested);
    const beside = await buildWriter(database, turnLog, neighbour);
    old.append(delta('old', 'before '));
    await old.flush();
    const successor = await buildWriter(database, turnLog, contested);

    old.append(delta('old', 'too late'));
    beside.append(delta('n', 'unharmed'));
    await expect(old.flush()).rejects.toThrow(WriterFencedError);
    await beside.flush();
    successor.append(delta('new', 'after'));
    await successor.flush();

    expect(() => old.append(delta('old', 'again'))).toThrow(WriterFencedError);
    expect(old.signal.aborted).toBe(true);
    expect(textOf(await readLog(turnLog, contested.id))).toBe('before after');
    expect(textOf(await readLog(turnLog, neighbour.id))).toBe('unharmed');
    await turnLog.close();
  });

  it('A writer continues after a chunk that another transaction has inserted', async () => {
    const { database } = environment;
    const { turnLog } = buildTurnLog(database);
    const turn = await buildTurn(database);
    const writer = await buildWriter(database, turnLog, turn);
    writer.append(delta('p', 'one '));
    await writer.flush();
    const result = { type: 'tool-output-available', toolCallId: 't', output: 'between' } as const;
    await transaction(database, (tx) => turnLog.appendIn(tx, turn.id, [result]));
    writer.append(delta('p', 'two'));
    await writer.flush();
    const log = await readLog(turnLog, turn.id);
    expect(log.slice(2).map(({ type }) => type)).toEqual(['text-delta', 'tool-output-available', 'text-delta']);
    await turnLog.close();
  });

  it('A chunk that is too large for a packet fails its own turn and no other', async () => {
    const { database } = environment;
    const { turnLog } = buildTurnLog(database);
    const [greedy, modest] = [await buildTurn(database), await buildTurn(database)];
    const [large, small] = [await buildWriter(database, turnLog, greedy), await buildWriter(database, turnLog, modest)];
    large.append(delta('p', 'x'.repeat(17 * 1024 * 1024)));
    small.append(delta('p', 'fine'));
    await expect(large.flush()).rejects.toThrow(SegmentTooLargeError);
    await small.flush();
    expect(textOf(await readLog(turnLog, modest.id))).toBe('fine');
    expect(textOf(await readLog(turnLog, greedy.id))).toBe('');
    await turnLog.close();
  });

  it('A turn whose row is locked does not hold up other turns', async () => {
    const { database } = environment;
    const { turnLog } = buildTurnLog(database);
    const [locked, free] = [await buildTurn(database), await buildTurn(database)];
    const [waiting, going] = [await buildWriter(database, turnLog, locked), await buildWriter(database, turnLog, free)];
    const holder = await database.pool.getConnection();
    await holder.query('START TRANSACTION');
    await holder.query('SELECT id FROM turns WHERE id = ? FOR UPDATE', [locked.id]);

    waiting.append(delta('p', 'late'));
    going.append(delta('p', 'on time'));
    let waited = true;
    const late = waiting.flush().then(() => {
      waited = false;
    });
    await going.flush();
    for (let more = 0; more < 5; more++) {
      going.append(delta('p', '.'));
      await going.flush();
    }
    expect(waited).toBe(true);
    await holder.query('ROLLBACK');
    holder.release();
    await late;
    expect(textOf(await readLog(turnLog, free.id))).toBe('on time.....');
    expect(textOf(await readLog(turnLog, locked.id))).toBe('late');
    await turnLog.close();
  });

  it('A batch holds its fence until it is committed, so no epoch is taken meanwhile', async () => {
    const { database } = environment;
    const { turnLog } = buildTurnLog(database);
    const turn = await buildTurn(database);
    const writer = await buildWriter(database, turnLog, turn);
    // An open transaction has taken the batch's place in the log, so the batch waits for that transaction to end.
    const holder = await database.pool.getConnection();
    await holder.query('START TRANSACTION');
    await holder.query('INSERT INTO turn_segments VALUES (?, ?, ?, 0, ?)', [
      turn.id,
      writer.nextSeq,
      writer.nextSeq,
      '',
    ]);
    writer.append(delta('p', 'said'));
    const said = writer.flush();
    await waitFor('the batch to hold its fence', async () => {
      const lock = database.pool.query('SELECT id FROM turns WHERE id = ? FOR UPDATE NOWAIT', [turn.id]);
      const code = await lock.then(String, ({ code }: { code: string }) => code);
      return ['ER_LOCK_NOWAIT', 'ER_LOCK_WAIT_TIMEOUT'].includes(code);
    });
    let isTaken = false;
    const successor = buildWriter(database, turnLog, turn).then((next) => {
      isTaken = true;
      return next;
    });
    await buildWriter(database, turnLog, await buildTurn(database));
    expect(isTaken).toBe(false);
    await holder.query('ROLLBACK');
    holder.release();
    await said;
    expect((await successor).nextSeq).toBe(writer.nextSeq);
    expect(textOf(await readLog(turnLog, turn.id))).toBe('said');
    await turnLog.close();
  });

  it.each(['before', 'after'] as const)(
    'A batch is written once when the connection is lost %s its COMMIT arrives',
    async (when) => {
      const { database } = environment;
      const turn = await buildTurn(database);
      const { turnLog, told } = buildTurnLog({ ...database, pool: losingCommits(when) });
      const writer = await buildWriter(database, turnLog, turn);
      for (const word of ['one ', 'two ', 'three']) {
        writer.append(delta(word, word));
        await writer.flush();
      }
      expect(textOf(await readLog(turnLog, turn.id))).toBe('one two three');
      expect(told.map(({ firstSeq, lastSeq }) => [firstSeq, lastSeq])).toEqual([
        [3, 3],
        [4, 4],
        [5, 5],
      ]);
      await turnLog.close();
    },
  );

  it('A writer cannot write after the end of its turn', async () => {
    const { database } = environment;
    const { turnLog } = buildTurnLog(database);
    const turn = await buildTurn(database);
    const writer = await buildWriter(database, turnLog, turn);
    writer.append({ type: 'text-start', id: 'p' });
    writer.append(delta('p', 'kept'));
    await writer.flush();
    await endTurn({ database, turnLog }, turn.id, { status: 'stopped' });
    const before = await readLog(turnLog, turn.id);
    writer.append(delta('p', 'lost'));
    await expect(writer.flush()).rejects.toThrow(WriterFencedError);
    expect(await readLog(turnLog, turn.id)).toEqual(before);
    expect(before.at(-1)).toEqual({ type: 'abort', reason: 'stopped' });
    await turnLog.close();
  });

  it('A token is written by one INSERT, and the row of the turn stays as it is', async () => {
    const { database } = environment;
    const statements: string[] = [];
    const pool = watchedPool(async (sql, run) => {
      statements.push(sql);
      return run();
    });
    const { turnLog } = buildTurnLog({ ...database, pool });
    const turn = await buildTurn(database);
    const row = async () => (await database.pool.query('SELECT * FROM turns WHERE id = ?', [turn.id]))[0];
    const writer = await buildWriter(database, turnLog, turn);
    const before = await row();
    for (let word = 0; word < 10; word++) {
      writer.append(delta('p', `w${word} `));
      await writer.flush();
    }
    expect(statements.map((sql) => sql.slice(0, 25))).toEqual(Array(10).fill('INSERT INTO turn_segments'));
    expect(await row()).toEqual(before);
    await turnLog.close();
  });

  /** A pool whose first two commits lose their connection, before or after they take effect. */
  function losingCommits(when: 'before' | 'after') {
    let toLose = 2;
    return watchedPool(async (sql, run, connection) => {
      // A batch is one statement, which commits by itself.
      const commits =
        sql === 'COMMIT' ||
        sql.startsWith('INSERT INTO turn_segments (turn_id, first_seq, last_seq, writer_epoch, chunks)\n');
      if (!commits || toLose === 0) return run();
      toLose--;
      if (when === 'after') await run();
      connection.destroy();
      throw new Error('Connection lost.');
    });
  }

  /** The environment's pool, whose connections pass their statements through `watch`. */
  function watchedPool(watch: (sql: string, run: () => Promise<unknown>, on: PoolConnection) => Promise<unknown>) {
    const { pool } = environment.database;
    return new Proxy(pool, {
      get(target, property) {
        if (property !== 'getConnection') return Reflect.get(target, property, target);
        return async () => watched(await pool.getConnection());
      },
    });

    function watched(connection: PoolConnection): PoolConnection {
      return new Proxy(connection, {
        get(target, property) {
          const value = Reflect.get(target, property, target) as unknown;
          if (property !== 'query') return typeof value === 'function' ? value.bind(target) : value;
          return (statement: Statement, values?: unknown[]) =>
            watch(sqlOf(statement), () => connection.query(statement as string, values), connection);
        },
      });
    }
  }
});
