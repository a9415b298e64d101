import { setTimeout as delay } from 'node:timers/promises';
import mysql, { type Connection } from 'mysql2/promise';
import { startAtrium } from './support/atrium.ts';
import { quantile } from './support/quantile.ts';

/**
 * What a tenant at its limits costs its neighbour on the server of spaces' databases: `npx node bench/databases.ts`. The
 * neighbour reads one row again and again, alone, and then beside a tenant that has taken all of its connections, whose
 * statements compute, sort on the disk and write without end. `SECONDS_EACH` is how long each is measured.
 */
const secondsEach = Number(process.env.SECONDS_EACH ?? 10);
const tenantConnections = 20;

const hogs = [
  "SELECT BENCHMARK(2000000000, SHA2('x', 512))",
  'SELECT COUNT(*) FROM (SELECT a.id, b.words FROM notes a JOIN notes b ORDER BY RAND()) AS sorted',
  'INSERT INTO notes (words) SELECT words FROM notes LIMIT 2000',
];

const atrium = await startAtrium({ ATRIUM_LOG_LEVEL: 'warn', ATRIUM_RATE_LIMIT_PER_MINUTE: '0' });
const open: Connection[] = [];
try {
  const headers = { authorization: `Bearer ${atrium.token}`, 'content-type': 'application/json' };
  const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const response = await fetch(atrium.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };
  const spaceId = (await call<{ data: { id: string }[] }>('GET', '/api/spaces')).data[0]?.id;
  const databases = `/api/spaces/${spaceId}/databases`;
  /** A database with a table of 4,096 rows, and the way in. */
  const make = async (name: string): Promise<() => Promise<Connection>> => {
    const { id } = await call<{ id: string }>('POST', databases, { name });
    const { url } = await call<{ url: string }>('GET', `${databases}/${id}/connection`);
    const enter = async () => {
      const connection = await mysql.createConnection({ uri: url });
      connection.on('error', () => undefined); // ended by the watchdog
      open.push(connection);
      return connection;
    };
    const connection = await enter();
    await connection.query('CREATE TABLE notes (id INT PRIMARY KEY AUTO_INCREMENT, words VARCHAR(200))');
    await connection.query("INSERT INTO notes (words) VALUES (REPEAT('x', 200))");
    for (let times = 0; times < 12; times++)
      await connection.query('INSERT INTO notes (words) SELECT words FROM notes');
    connection.destroy();
    return enter;
  };
  const [tenant, neighbour] = [await make('tenant'), await make('neighbour')];
  const reading = await neighbour();
  const measure = async (): Promise<number[]> => {
    const times: number[] = [];
    for (const end = performance.now() + secondsEach * 1_000; performance.now() < end; await delay(2)) {
      const begun = performance.now();
      await reading.query('SELECT words FROM notes WHERE id = ?', [1 + (times.length % 1_000)]);
      times.push(performance.now() - begun);
    }
    return times;
  };
  await measure();
  const alone = await measure();
  let isOver = false;
  const keepBusy = async (at: number) => {
    while (!isOver) {
      const connection = await tenant().catch(() => undefined);
      while (!isOver && connection !== undefined) {
        const isRefused = await connection.query(String(hogs[at % hogs.length])).then(
          () => false,
          () => true,
        );
        if (isRefused) break;
      }
      connection?.destroy();
      await delay(100);
    }
  };
  for (let at = 0; at < tenantConnections; at++) void keepBusy(at);
  await delay(2_000);
  const beside = await measure();
  isOver = true;
  for (const connection of open) connection.destroy();
  for (const share of [0.5, 0.95]) {
    const [one, other] = [quantile(alone, share), quantile(beside, share)];
    const ratio = (other / one).toFixed(1);
    process.stdout.write(
      `p${share * 100}: ${one.toFixed(2)} ms alone, ${other.toFixed(2)} ms beside a tenant at its limits, ${ratio} times\n`,
    );
  }
} finally {
  for (const connection of open) connection.destroy();
  await atrium.stop();
}
