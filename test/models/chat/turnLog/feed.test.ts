import { endTurn } from '../../../../models/chat/endTurn.ts';
import type { Turn } from '../../../../models/chat/turn.ts';
import { TurnFeed } from '../../../../models/chat/turnLog/feed.ts';
import type { CommitNotices, NoticeListener } from '../../../../models/chat/turnLog/notices.ts';
import { TurnLog } from '../../../../models/chat/turnLog/turnLog.ts';
import type { TurnWriter } from '../../../../models/chat/turnLog/turnWriter.ts';
import type { Database } from '../../../../models/database/database.ts';
import { createLogger } from '../../../../telemetry/logger.ts';
import { buildTurn, buildTurnLog, buildWriter, delta } from '../../../builders/turnLog.ts';
import { createTestEnvironment, type TestEnvironment } from '../../../support/environment.ts';
import { type Statement, sqlOf } from '../../../support/recordStatements.ts';
import { waitFor } from '../../../support/waitFor.ts';

let environment: TestEnvironment;
/** The log of another process. The feed does not hear of its commits. */
let elsewhere: TurnLog;
const closers: (() => void | Promise<void>)[] = [];

beforeAll(async () => {
  environment = await createTestEnvironment();
  elsewhere = buildTurnLog(environment.database).turnLog;
});

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

afterAll(async () => {
  await elsewhere.close();
  await environment.close();
});

/** Commit notices that the test sends itself. */
class FakeNotices implements CommitNotices {
  areHeard = true;
  #listener: NoticeListener | undefined;
  tell(): void {}
  listen(listener: NoticeListener): void {
    this.#listener = listener;
  }
  say(turnId: string, lastSeq: number): void {
    this.#listener?.onNotice(turnId, lastSeq);
  }
  turn(areHeard: boolean): void {
    this.areHeard = areHeard;
    this.#listener?.onChange();
  }
}

interface Reading {
  turn: Turn;
  writer: TurnWriter;
  /** The lines in the order in which they came. A gap or a repeat is noted in `problems`. */
  lines: string[];
  problems: string[];
  ended: boolean;
}

/** A feed that records its statements, and a reader for each of `turns` turns. */
async function buildFeed({ turns, notices }: { turns: number; notices?: FakeNotices }) {
  const statements: string[] = [];
  const { database } = environment;
  const pool = new Proxy(database.pool, {
    get(target, property) {
      const value = Reflect.get(target, property, target) as unknown;
      if (property !== 'query') return typeof value === 'function' ? value.bind(target) : value;
      return (statement: Statement, values?: unknown[]) => {
        statements.push(sqlOf(statement));
        return target.query(statement as string, values);
      };
    },
  });
  const counted: Database = { ...database, pool };
  const logger = createLogger({ level: 'silent' });
  const feed = new TurnFeed({ database: counted, logger, remoteWriters: true, notices });
  const log = new TurnLog({ database: counted, onCommit: feed.publish });
  feed.attach(log);
  closers.push(() => log.close());
  const readings: Reading[] = [];
  for (let number = 0; number < turns; number++) {
    const turn = await buildTurn(database);
    readings.push({
      turn,
      writer: await buildWriter(database, elsewhere, turn),
      lines: [],
      problems: [],
      ended: false,
    });
  }
  for (const reading of readings) closers.push(read(feed, reading));
  await waitFor('all readers to be caught up', () =>
    readings.every(({ lines, writer }) => lines.length === writer.nextSeq - 1),
  );
  statements.length = 0;
  return { feed, readings, statements };
}

function read(feed: TurnFeed, reading: Reading, after = 0): () => void {
  return feed.subscribe(reading.turn.id, after, {
    onChunks(firstSeq, lines) {
      if (firstSeq !== after + reading.lines.length + 1)
        reading.problems.push(`${firstSeq} after ${reading.lines.length}`);
      reading.lines.push(...lines);
    },
    onEnd() {
      reading.ended = true;
    },
    onError(error) {
      reading.problems.push(String(error));
    },
  });
}

async function say(reading: Reading, text: string): Promise<number> {
  reading.writer.append(delta(`p${reading.writer.nextSeq % 2}`, text));
  await reading.writer.flush();
  return reading.writer.nextSeq - 1;
}

const haveAll = (readings: Reading[]) => readings.every(({ lines, writer }) => lines.length === writer.nextSeq - 1);

async function expectLogs(readings: Reading[]): Promise<void> {
  for (const { turn, lines, problems } of readings) {
    const segments = await elsewhere.read(turn.id, 0, 100_000);
    expect(lines.join('\n')).toBe(segments.map((segment) => segment.lines).join('\n'));
    expect(problems).toEqual([]);
  }
}

it('The feed reads the writes of other processes by one statement a look, for any number of turns and readers', async () => {
  const { feed, readings, statements } = await buildFeed({ turns: 12 });
  const seconds = readings.map((reading) => ({ ...reading, lines: [], problems: [] }));
  for (const second of seconds) closers.push(read(feed, second, second.writer.nextSeq - 1));
  await waitFor('the looks to begin', () => statements.some(isLook));
  const before = statements.filter((sql) => !isLook(sql)).length;
  for (let word = 0; word < 5; word++) {
    await Promise.all(readings.map((reading) => say(reading, `w${word} `)));
    await waitFor('all readers to have the lines', () => haveAll(readings));
  }
  await waitFor('the second readers', () => seconds.every(({ lines }) => lines.length === 5));
  expect(statements.filter((sql) => !isLook(sql)).length - before).toBeLessThanOrEqual(seconds.length);
  expect(statements.filter((sql) => sql.includes('last_seq > ?')).length).toBeLessThanOrEqual(seconds.length);
  await expectLogs(readings);
});

it('The feed looks once for all notices of a moment, and not for unread turns or known chunks', async () => {
  const notices = new FakeNotices();
  const { readings, statements } = await buildFeed({ turns: 12, notices });
  const unread = await buildTurn(environment.database);
  const told = await Promise.all(readings.map((reading) => say(reading, 'word')));
  const looksBefore = statements.length;
  for (const [index, { turn }] of readings.entries()) notices.say(turn.id, told[index] ?? 0);
  await waitFor('all readers to have the lines', () => haveAll(readings));
  // One look for the first notice, one for the others, and perhaps one of the regular interval.
  expect(statements.length - looksBefore).toBeLessThanOrEqual(3);

  const { length } = statements;
  for (let repeat = 0; repeat < 100; repeat++) {
    notices.say(unread.id, repeat);
    for (const [index, { turn }] of readings.entries()) notices.say(turn.id, told[index] ?? 0);
  }
  await new Promise((resolve) => setImmediate(resolve));
  expect(statements.length - length).toBeLessThanOrEqual(1);
  await expectLogs(readings);
});

it('Readers get the whole log even if notices are wrong, late, repeated, out of order or missing', async () => {
  const notices = new FakeNotices();
  const { readings, statements } = await buildFeed({ turns: 4, notices });
  for (let word = 0; word < 60; word++) {
    for (const reading of readings) {
      const seq = await say(reading, `w${word} `);
      if (word % 3 === 0) continue;
      notices.say(reading.turn.id, [seq, 1, seq + 1_000, Number.MAX_SAFE_INTEGER, seq - 5][word % 5] ?? seq);
      if (word % 7 === 0) notices.say(reading.turn.id, seq);
    }
  }
  await waitFor('all readers to have the lines', () => haveAll(readings));
  await expectLogs(readings);
  expect(statements.every(isLook)).toBe(true);
});

it('The feed finds writes without notices, and then looks every few milliseconds', async () => {
  const notices = new FakeNotices();
  const { readings, statements } = await buildFeed({ turns: 2, notices });
  await Promise.all(readings.map((reading) => say(reading, 'untold')));
  await waitFor('all readers to have the lines', () => haveAll(readings));
  await waitFor('looks every few milliseconds', () => {
    const before = statements.length;
    return new Promise<boolean>((resolve) => setTimeout(() => resolve(statements.length - before >= 5), 300));
  });
  await expectLogs(readings);
});

it('The feed looks by itself as soon as it hears no notices any more', async () => {
  const notices = new FakeNotices();
  const { readings } = await buildFeed({ turns: 2, notices });
  notices.turn(false);
  for (let word = 0; word < 20; word++) {
    await say(readings[0] as Reading, `w${word} `);
    await waitFor('the readers to have the word', () => haveAll(readings));
  }
  notices.turn(true);
  await expectLogs(readings);
});

it('The readers of a turn end when another process ends the turn', async () => {
  const notices = new FakeNotices();
  const { readings } = await buildFeed({ turns: 3, notices });
  const [first] = readings as [Reading];
  await endTurn({ database: environment.database, turnLog: elsewhere }, first.turn.id, { status: 'stopped' });
  notices.say(first.turn.id, Number.MAX_SAFE_INTEGER);
  await waitFor('the reader to end', () => first.ended);
  expect(readings.map(({ ended }) => ended)).toEqual([true, false, false]);
  await expectLogs(readings);
});

it('A backlog larger than one statement returns arrives in order', async () => {
  const notices = new FakeNotices();
  const { readings } = await buildFeed({ turns: 3, notices });
  for (const reading of readings) for (let word = 0; word < 150; word++) await say(reading, `w${word} `);
  for (const { turn, writer } of readings) notices.say(turn.id, writer.nextSeq - 1);
  await waitFor('all readers to have the lines', () => haveAll(readings));
  await expectLogs(readings);
});

function isLook(sql: string): boolean {
  return sql.includes('UNION ALL');
}
