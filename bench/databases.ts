import { availableParallelism } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import mysql, { type Connection } from 'mysql2/promise';
import { startAtrium } from './support/atrium.ts';
import { quantile } from './support/times.ts';

/**
 * Measures what a tenant at its limits costs its neighbour on the server of spaces' databases: `npx node
 * bench/databases.ts`. The neighbour, in another space, reads and changes a row again and again: alone, and beside a
 * tenant that uses all of its connections for endless statements that compute, sort on disk and write. Both take turns,
 * so that other load on the machine affects both. `ROUNDS` is the number of rounds, `SECONDS_EACH` their length.
 */
const rounds = Number(process.env.ROUNDS ?? 5);
const secondsEach = Number(process.env.SECONDS_EACH ?? 4);
/** One connection of the tenant stays free, to end the others. */
const busyConnections = 19;
/** Time for the tenant's statements to begin, and for the workers to notice them. */
const settleMs = 4_000;

const hogs = [
  "SELECT BENCHMARK(2000000000, SHA2('x', 512))",
  'SELECT COUNT(*) FROM (SELECT a.id, b.words FROM notes a JOIN notes b ORDER BY RAND()) AS sorted',
  'INSERT INTO more (words) SELECT words FROM notes LIMIT 2000',
];

const work = {
  reads: 'SELECT words FROM notes WHERE id = ?',
  writes: 'UPDATE notes SET words = REVERSE(words) WHERE id = ?',
} as const;
type Kind = keyof typeof work;
const kinds = Object.keys(work) as Kind[];

const atrium = await startAtrium({ ATRIUM_LOG_LEVEL: 'warn', ATRIUM_RATE_LIMIT_PER_MINUTE: '0' });
const open = new Set<Connection>();
try {
  const { call } = atrium;
  /** Makes a database in a new space, with a table of 4,096 rows. Returns a function that connects. */
  const make = async (name: string): Promise<() => Promise<Connection>> => {
    const space = await call<{ id: string }>('POST', '/api/spaces', { name });
    const databases = `/api/spaces/${space.id}/databases`;
    const { id } = await call<{ id: string }>('POST', databases, { name });
    const { url } = await call<{ url: string }>('GET', `${databases}/${id}/connection`);
    const enter = async () => {
      const connection = await mysql.createConnection({ uri: url });
      connection.on('error', () => undefined); // ended by this program or by the watchdog
      open.add(connection);
      return connection;
    };
    const connection = await enter();
    await connection.query('CREATE TABLE notes (id INT PRIMARY KEY AUTO_INCREMENT, words VARCHAR(200))');
    await connection.query('CREATE TABLE more LIKE notes');
    await connection.query("INSERT INTO notes (words) VALUES (REPEAT('x', 200))");
    for (let times = 0; times < 12; times++)
      await connection.query('INSERT INTO notes (words) SELECT words FROM notes');
    connection.destroy();
    return enter;
  };
  const [tenant, neighbour] = [await make('tenant'), await make('neighbour')];
  const [asking, ending] = [await neighbour(), await tenant()];

  /** Measures each statement of the neighbour, in milliseconds. */
  const measure = async (into: Record<Kind, number[]>): Promise<void> => {
    const end = performance.now() + secondsEach * 1_000;
    for (let at = 1; performance.now() < end; at = (at % 1_000) + 1) {
      for (const kind of kinds) {
        const begun = performance.now();
        await asking.query(work[kind], [at]);
        into[kind].push(performance.now() - begun);
        await delay(2);
      }
    }
  };

  /** Sends a statement again and again until `signal` aborts. */
  const keepBusy = async (sql: string, signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      const connection = await tenant().catch(() => undefined);
      for (let isRefused = false; !isRefused && !signal.aborted && connection !== undefined; ) {
        isRefused = await connection.query(sql).then(
          () => false,
          () => true,
        );
      }
      connection?.destroy();
      if (connection !== undefined) open.delete(connection);
      await delay(100);
    }
  };

  const others = async () => {
    const [rows] = await ending.query('SHOW PROCESSLIST');
    return (rows as { Id: number }[]).filter(({ Id }) => Id !== ending.threadId);
  };
  const [alone, beside]: Record<Kind, number[]>[] = [
    { reads: [], writes: [] },
    { reads: [], writes: [] },
  ];
  for (let round = 0; round < rounds && alone !== undefined && beside !== undefined; round++) {
    await measure(alone);
    const calledOff = new AbortController();
    const busy = Array.from({ length: busyConnections }, (_, at) =>
      keepBusy(String(hogs[at % hogs.length]), calledOff.signal),
    );
    await delay(settleMs);
    await measure(beside);
    calledOff.abort();
    while ((await others()).length > 0) {
      for (const { Id } of await others()) await ending.query(`KILL ${Id}`).catch(() => undefined);
      await delay(100);
    }
    await Promise.all(busy);
    await ending.query('TRUNCATE TABLE more');
  }
  process.stdout.write(`${busyConnections} busy connections of one tenant on ${availableParallelism()} cores\n`);
  for (const kind of kinds) {
    for (const share of [0.5, 0.95]) {
      const [one, other] = [quantile(alone?.[kind] ?? [], share), quantile(beside?.[kind] ?? [], share)];
      const times = `${one.toFixed(2)} ms alone, ${other.toFixed(2)} ms beside it`;
      process.stdout.write(`its neighbour ${kind}, p${share * 100}: ${times}, ${(other / one).toFixed(1)} times\n`);
    }
  }
} finally {
  for (const connection of open) connection.destroy();
  await atrium.stop();
}
