import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import mysql, { type RowDataPacket } from 'mysql2/promise';
import { startAtrium, startProgram, tokenFor } from './support/atrium.ts';
import { usageOfTree } from './support/processTree.ts';
import { readAtrium } from './support/streams.ts';

/**
 * * What two APIs and two workers cost against one process that is both, for the same streams: `npx node
 * bench/processes.ts`. Statements are the server's own count, CPU time that of all processes, the database's and
 * Temporal's too. With `ATRIUM_REDIS_URL` also with Redis between them, whose own CPU time is not counted.
 */
const streams = Number(process.env.BENCH_STREAMS ?? 32);
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const model = 'paced-200-20';
const warmModel = 'flat-10';
const { ATRIUM_REDIS_URL: redisUrl, ...environment } = process.env;
process.env = environment;

interface Setup {
  name: string;
  urls: string[];
  token: string;
  pids: number[];
  statements: number;
  cpuSeconds: number;
}

await using running = new AsyncDisposableStack();
const provider = await startProgram('test/fakes/openaiServerProcess.ts');
running.defer(() => void provider.process.kill());
const atrium = await startAtrium({
  ATRIUM_COMPATIBLE_BASE_URL: provider.line,
  ATRIUM_COMPATIBLE_MODELS: [model, warmModel].join(','),
  ATRIUM_RATE_LIMIT_PER_MINUTE: '0',
  ATRIUM_LOG_LEVEL: 'warn',
});
running.defer(() => atrium.stop());
const connection = await mysql.createConnection(atrium.environment.ATRIUM_DATABASE_URL ?? '');
running.defer(() => connection.end());

const setups: Setup[] = [
  { name: 'one process', urls: [atrium.url], token: atrium.token, pids: [], statements: 0, cpuSeconds: 0 },
];
setups.push(await split('two APIs and two workers', {}));
if (redisUrl !== undefined) setups.push(await split('the same over Redis', { ATRIUM_REDIS_URL: redisUrl }));

for (const setup of setups) for (let round = 0; round < 5; round++) await answer(setup, warmModel, 8);
// In turns, so that what else the machine does falls on all of them.
for (let round = 0; round < rounds; round++) for (const setup of setups) await measure(setup);

const [one] = setups as [Setup];
const tokens = rounds * streams * 200;
console.log(`${rounds} rounds of ${streams} streams of 200 tokens, one every 20 ms`);
for (const { name, statements, cpuSeconds } of setups) {
  const perThousand = (value: number) => ((value / tokens) * 1_000).toFixed(2);
  console.log(
    `  ${name}: ${perThousand(statements)} statements (× ${(statements / one.statements).toFixed(2)}) and ` +
      `${perThousand(cpuSeconds)} CPU s (× ${(cpuSeconds / one.cpuSeconds).toFixed(2)}) per 1,000 tokens`,
  );
}

async function measure(setup: Setup): Promise<void> {
  const [statements, cpuSeconds] = [await questions(), cpuOf(setup)];
  await answer(setup, model, streams);
  setup.statements += (await questions()) - statements;
  setup.cpuSeconds += cpuOf(setup) - cpuSeconds;
}

async function answer({ urls, token }: Setup, modelId: string, count: number): Promise<void> {
  const one = async (index: number) => {
    await delay((index * 20) / count);
    await readAtrium(urls[index % urls.length] ?? '', token, modelId, () => undefined);
  };
  await Promise.all(Array.from({ length: count }, (_, index) => one(index)));
}

async function questions(): Promise<number> {
  const [rows] = await connection.query<RowDataPacket[]>("SHOW GLOBAL STATUS LIKE 'Questions'");
  return Number(rows[0]?.Value);
}

/** The parts hang on the one process, which has nothing else to do while the others work. */
function cpuOf({ pids }: Setup): number {
  return [atrium.pid, ...pids].reduce((sum, pid) => sum + usageOfTree(pid).cpuSeconds, 0);
}

/** Processes on the same parts, under an installation of their own: their turns are theirs. */
async function split(name: string, settings: Record<string, string>): Promise<Setup> {
  const env = { ...atrium.environment, ATRIUM_INSTALLATION: `split-${setups.length}`, ...settings };
  const started = await Promise.all((['api', 'api', 'worker', 'worker'] as const).map((role) => startRole(role, env)));
  const urls = started.flatMap(({ apiUrl }) => (apiUrl === undefined ? [] : [apiUrl]));
  return {
    name,
    urls,
    token: await tokenFor(env),
    pids: started.map(({ child }) => child.pid ?? 0),
    statements: 0,
    cpuSeconds: 0,
  };
}

async function startRole(role: string, env: NodeJS.ProcessEnv): Promise<{ child: ChildProcess; apiUrl?: string }> {
  const program = join(import.meta.dirname, '..', 'bin', 'atrium.ts');
  const child = spawn(process.execPath, [program, role, '--json'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  running.defer(async () => {
    child.kill('SIGTERM');
    await once(child, 'exit');
  });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return { child, apiUrl: (JSON.parse(line) as { apiUrl?: string }).apiUrl };
}
