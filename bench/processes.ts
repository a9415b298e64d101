import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '@redis/client';
import mysql, { type RowDataPacket } from 'mysql2/promise';
import { nodeFlags } from '../bin/nodeFlags.mjs';
import { startAtrium, startProgram, tokenFor } from './support/atrium.ts';
import { cpuByProgram } from './support/processTree.ts';
import { readAtrium } from './support/streams.ts';
import { quantile } from './support/times.ts';

/**
 * Compares two APIs and two workers with one process that is both, for the same streams: `npx node bench/processes.ts`.
 * Statements are the server's own count. CPU time is that of every process and of the shared parts: the database,
 * Temporal, the object store and, with `ATRIUM_REDIS_URL`, Redis. First words are measured for turns one after the
 * other and for concurrent turns.
 */
const streams = Number(process.env.BENCH_STREAMS ?? 32);
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
/** Turns of each stream in a round, one after the other. */
const turns = 2;
const idleSeconds = 10;
const model = 'paced-200-20';
/** The same turns but faster, for warming up: four processes compile four times the code. */
const warmModel = 'paced-200-2';
/** For the first words of turns that run alone. */
const shortModel = 'flat-5';
const lonelyTurns = 30;
const warmRounds = Number(process.env.BENCH_WARM_ROUNDS ?? 10);
const { ATRIUM_REDIS_URL: redisUrl, ...environment } = process.env;
process.env = environment;

/** CPU seconds by program or role. */
type Cpu = Map<string, number>;

interface Setup {
  name: string;
  urls: string[];
  token: string;
  /** The processes of Atrium: process id to role. */
  processes: Map<number, string>;
  usesRedis: boolean;
  statements: number;
  cpu: Cpu;
  /** How long the measured turns took, and the CPU time of its own processes during `idleSeconds` at rest. */
  seconds: number;
  atRest: Cpu;
  /** Milliseconds to the first words: of turns that ran alone, and of the measured turns. */
  aloneMs: number[];
  togetherMs: number[];
}

await using running = new AsyncDisposableStack();
const provider = await startProgram('test/fakes/openaiServerProcess.ts');
running.defer(() => void provider.process.kill());
const atrium = await startAtrium({
  ATRIUM_COMPATIBLE_BASE_URL: provider.line,
  ATRIUM_COMPATIBLE_MODELS: [model, warmModel, shortModel].join(','),
  ATRIUM_RATE_LIMIT_PER_MINUTE: '0',
  ATRIUM_LOG_LEVEL: 'error',
  // Nine processes share a database with 300 connections.
  ATRIUM_DATABASE_POOL_SIZE: '15',
});
running.defer(() => atrium.stop());
const connection = await mysql.createConnection(atrium.environment.ATRIUM_DATABASE_URL ?? '');
running.defer(() => connection.end());
const redis = redisUrl === undefined ? undefined : await createClient({ url: redisUrl }).connect();
running.defer(() => redis?.destroy());

const one = setupOf('one process', {
  urls: [atrium.url],
  token: atrium.token,
  processes: new Map([[atrium.pid, 'process']]),
});
const setups = [one, await split('two APIs and two workers', {})];
if (redisUrl !== undefined) setups.push(await split('the same over Redis', { ATRIUM_REDIS_URL: redisUrl }));

for (let round = 0; round < warmRounds; round++) for (const setup of setups) await answer(setup, warmModel, 1);
await rest();
for (let turn = 0; turn < lonelyTurns; turn++) {
  for (const setup of setups) setup.aloneMs.push(await firstWordsMs(setup, turn, shortModel));
}
// In turn, so that other load on the machine affects all setups.
for (let round = 0; round < rounds; round++) for (const setup of setups) await measure(setup);

const answered = rounds * streams * turns;
console.log(`${answered} turns in ${streams} streams, each of 200 tokens, one every 20 ms`);
for (const { name, statements, cpu, seconds, atRest, aloneMs, togetherMs } of setups) {
  const used = sum(cpu);
  console.log(
    `  ${name}: ${(statements / answered).toFixed(1)} statements (× ${(statements / one.statements).toFixed(2)}) and ` +
      `${inMs(used / answered)} of CPU time (× ${(used / sum(one.cpu)).toFixed(2)}) a turn`,
  );
  console.log(
    `    first words ${compared(aloneMs, one.aloneMs)} alone, ${compared(togetherMs, one.togetherMs)} together`,
  );
  const resting = (sum(atRest) / idleSeconds) * seconds;
  console.log(`    ${listed(cpu, answered)}`);
  console.log(
    `    of it ${inMs(resting / answered)} that its processes use at rest: ${listed(atRest, idleSeconds)} a second`,
  );
}

/** Measures each setup's own processes at rest. Shared parts are left out, since they work for all setups. */
async function rest(): Promise<void> {
  const read = () => setups.map(readProcesses);
  const before = read();
  await delay(idleSeconds * 1_000);
  for (const [index, used] of read().entries()) {
    const atRest = setups[index]?.atRest;
    for (const [part, seconds] of used) atRest?.set(part, seconds - (before[index]?.get(part) ?? 0));
  }
}

async function measure(setup: Setup): Promise<void> {
  // Opens connections again that were closed meanwhile.
  await answer(setup, warmModel, 1);
  const statements = await questions();
  const startMs = performance.now();
  const used = await cpuDuring(setup, () => answer(setup, model, turns, setup.togetherMs));
  setup.seconds += (performance.now() - startMs) / 1_000;
  setup.statements += (await questions()) - statements;
  for (const [part, seconds] of used) setup.cpu.set(part, (setup.cpu.get(part) ?? 0) + seconds);
}

async function answer(setup: Setup, modelId: string, times: number, firstMs: number[] = []): Promise<void> {
  const stream = async (index: number) => {
    await delay((index * 20) / streams);
    for (let time = 0; time < times; time++) {
      firstMs.push(await firstWordsMs(setup, index, modelId));
    }
  };
  await Promise.all(Array.from({ length: streams }, (_, index) => stream(index)));
}

/** Reads a whole answer, and returns the time to its first words. */
async function firstWordsMs({ urls, token }: Setup, index: number, modelId: string): Promise<number> {
  const startMs = performance.now();
  let firstMs: number | undefined;
  await readAtrium(urls[index % urls.length] ?? '', token, modelId, () => {
    firstMs ??= performance.now() - startMs;
  });
  return firstMs ?? Number.NaN;
}

function compared(samples: number[], reference: number[]): string {
  const [here, there] = [quantile(samples, 0.5), quantile(reference, 0.5)];
  return `${here.toFixed(1)} ms (× ${(here / there).toFixed(2)})`;
}

async function questions(): Promise<number> {
  const [rows] = await connection.query<RowDataPacket[]>("SHOW GLOBAL STATUS LIKE 'Questions'");
  return Number(rows[0]?.Value);
}

/**
 * CPU time of a setup's own processes and the shared parts. Processes of other setups rest meanwhile, and are left out.
 */
async function cpuDuring(setup: Setup, work: () => Promise<unknown>): Promise<Cpu> {
  const before = await readCpu(setup);
  await work();
  const used = await readCpu(setup);
  for (const [part, seconds] of used) used.set(part, seconds - (before.get(part) ?? 0));
  return used;
}

async function readCpu(setup: Setup): Promise<Cpu> {
  const cpu = readProcesses(setup);
  const add = (part: string, seconds: number) => cpu.set(part, (cpu.get(part) ?? 0) + seconds);
  for (const [pid, { program, seconds }] of cpuByProgram(atrium.pid)) if (pid !== atrium.pid) add(program, seconds);
  if (redis !== undefined && setup.usesRedis) {
    const used = (await redis.info('cpu')).matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm);
    for (const [, seconds] of used) add('redis', Number(seconds));
  }
  return cpu;
}

function readProcesses({ processes }: Setup): Cpu {
  const cpu: Cpu = new Map();
  for (const [pid, part] of processes) {
    for (const [id, { seconds }] of cpuByProgram(pid)) if (id === pid) cpu.set(part, (cpu.get(part) ?? 0) + seconds);
  }
  return cpu;
}

function setupOf(name: string, facts: Pick<Setup, 'urls' | 'token' | 'processes'>, usesRedis = false): Setup {
  return {
    name,
    ...facts,
    usesRedis,
    statements: 0,
    cpu: new Map(),
    seconds: 0,
    atRest: new Map(),
    aloneMs: [],
    togetherMs: [],
  };
}

function sum(cpu: Cpu): number {
  return [...cpu.values()].reduce((all, seconds) => all + seconds, 0);
}

function listed(cpu: Cpu, per: number): string {
  const parts = [...cpu].sort(([, a], [, b]) => b - a).filter(([, seconds]) => seconds / per >= 0.000_5);
  return parts.map(([part, seconds]) => `${part} ${inMs(seconds / per)}`).join(', ');
}

function inMs(seconds: number): string {
  return `${(seconds * 1_000).toFixed(1)} ms`;
}

/** Starts processes on the same parts, as an installation of their own, so that they run only their own turns. */
async function split(name: string, settings: Record<string, string>): Promise<Setup> {
  const env = { ...atrium.environment, ATRIUM_INSTALLATION: `split-${Object.keys(settings).length}`, ...settings };
  const roles = ['api', 'api', 'worker', 'worker'] as const;
  const started = await Promise.all(roles.map((role) => startRole(role, env)));
  const urls = started.flatMap(({ apiUrl }) => (apiUrl === undefined ? [] : [apiUrl]));
  const processes = new Map(started.map(({ child, role }) => [child.pid ?? 0, `${role}s`]));
  return setupOf(name, { urls, token: await tokenFor(env), processes }, 'ATRIUM_REDIS_URL' in settings);
}

async function startRole(
  role: string,
  env: NodeJS.ProcessEnv,
): Promise<{ role: string; child: ChildProcess; apiUrl?: string }> {
  const program = join(import.meta.dirname, '..', 'bin', 'atrium.ts');
  const child = spawn(process.execPath, [...nodeFlags, program, role, '--json'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.defer(async () => {
    child.kill('SIGTERM');
    await once(child, 'exit');
  });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return { role, child, apiUrl: (JSON.parse(line) as { apiUrl?: string }).apiUrl };
}
