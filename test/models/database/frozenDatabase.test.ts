import { TurnFeed } from '../../../models/chat/turnLog/feed.ts';
import { type Database, openDatabase, transaction } from '../../../models/database/database.ts';
import { isDatabaseUnavailable } from '../../../models/database/unavailable.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { buildTurn, buildTurnLog, buildWriter, delta, readLog, textOf } from '../../builders/turnLog.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcpProxy.ts';

/**
 * A database that neither answers nor closes its connections. Everything that waits for it fails in time, and is tried
 * again on other connections.
 */
let environment: TestEnvironment;
let wire: TcpProxy;
let database: Database;

beforeAll(async () => {
  environment = await createTestEnvironment();
  wire = await startTcpProxy(() => environment.config.database.url);
});
afterAll(async () => {
  await wire.stop();
  await environment.close();
});
beforeEach(() => {
  const url = new URL(environment.config.database.url);
  url.port = new URL(wire.url).port;
  url.hostname = '127.0.0.1';
  database = openDatabase({ database: { url: url.href, poolSize: 4, silenceMs: 8_000 } });
});
afterEach(async () => {
  wire.thaw();
  await database.close();
});

const ask = (sql = 'SELECT 1') => database.pool.query(sql);
const askModels = () => database.sequelize.query('SELECT 1');

test('A statement without an answer means an unavailable database, and its connection is not used again', async () => {
  await Promise.all([ask(), ask(), askModels(), askModels()]);
  wire.freeze({ newOnes: false });
  const unanswered = await Promise.allSettled([ask(), askModels()]);
  for (const result of unanswered) {
    expect(result.status).toBe('rejected');
    expect(isDatabaseUnavailable((result as PromiseRejectedResult).reason)).toBe(true);
  }
  // The idle connections have frozen as well, and none of them is handed out.
  for (let round = 0; round < 4; round++) await Promise.all([ask(), ask(), askModels(), askModels()]);
});

test('A COMMIT that does not arrive means an unavailable database, and nothing is written', async () => {
  const failure = await transaction(database, async (tx) => {
    await database.sequelize.query("INSERT INTO schema_migrations VALUES ('frozen', UTC_TIMESTAMP(3))", {
      transaction: tx,
    });
    wire.freeze({ newOnes: false });
  }).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(isDatabaseUnavailable(failure)).toBe(true);
  const [rows] = await database.pool.query("SELECT name FROM schema_migrations WHERE name = 'frozen'");
  expect(rows).toEqual([]);
});

test('No caller waits forever for a connection, for a lock, or to connect', async () => {
  const held = await database.pool.getConnection();
  await held.query('START TRANSACTION');
  await held.query('SELECT * FROM schema_migrations FOR UPDATE');
  const locked = await ask('SELECT * FROM schema_migrations FOR UPDATE').catch((error: unknown) => error);
  expect(isDatabaseUnavailable(locked)).toBe(true);
  await held.query('ROLLBACK');
  held.release();

  wire.freeze();
  const waiting = await Promise.allSettled(Array.from({ length: 9 }, () => ask()));
  for (const result of waiting) expect(isDatabaseUnavailable((result as PromiseRejectedResult).reason)).toBe(true);
  await expect(database.check(200)).rejects.toThrow();
});

test('The check fails while connections are frozen, and passes after they are replaced', async () => {
  await database.check(30_000);
  wire.freeze({ newOnes: false });
  await expect(database.check(200)).rejects.toThrow(/in time/);
  await database.check(30_000);
});

test('Closing ends within its grace period even if connections are frozen', async () => {
  await Promise.all([ask(), askModels()]);
  const patient = database.patient();
  await Promise.all([patient.pool.query('SELECT 1'), patient.sequelize.query('SELECT 1')]);
  wire.freeze();
  const unanswered = Promise.allSettled([patient.pool.query('SELECT 1'), patient.sequelize.query('SELECT 1')]);
  await patient.close();
  for (const result of await unanswered) expect(result.status).toBe('rejected');
});

test('The group committer replaces a frozen connection, and every turn goes on', async () => {
  const { turnLog } = buildTurnLog(database);
  const turns = await Promise.all(Array.from({ length: 3 }, () => buildTurn(database)));
  const writers = await Promise.all(turns.map((turn) => buildWriter(database, turnLog, turn)));
  for (const writer of writers) writer.append(delta('a', 'before '));
  await Promise.all(writers.map((writer) => writer.flush()));
  wire.freeze({ newOnes: false });
  for (const writer of writers) writer.append(delta('b', 'after'));
  await Promise.all(writers.map((writer) => writer.flush()));
  for (const turn of turns) expect(textOf(await readLog(turnLog, turn.id))).toBe('before after');
  await turnLog.close();
});

test('A reader gets an error when its turn cannot be read for a while', async () => {
  const { turnLog } = buildTurnLog(database);
  const turn = await buildTurn(database);
  const feed = new TurnFeed({
    database,
    logger: createLogger({ level: 'silent' }),
    remoteWriters: true,
    blindMs: 1_000,
  });
  feed.attach(turnLog);
  const { promise: ended, resolve } = Promise.withResolvers<unknown>();
  const onEnd = () => resolve('the end of the turn');
  feed.subscribe(turn.id, 0, { onChunks: () => wire.freeze(), onEnd, onError: resolve });
  expect(isDatabaseUnavailable(await ended)).toBe(true);
  expect(feed.hasReaders(turn.id)).toBe(false);
  await turnLog.close();
});
