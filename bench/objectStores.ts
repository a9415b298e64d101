import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { choosePort } from '../stack/ports.ts';
import { waitUntil } from '../stack/waiting.ts';
import { quantile } from './support/times.ts';

/**
 * Compares object stores, in turn, in folders of the same disk: `npx node bench/objectStores.ts versitygw=PATH
 * versitygw+sync=PATH store=PATH store-relaxed=PATH minio=PATH`, with any of these. The first is the reference for the
 * others. With `+sync` this process syncs the object's file and folder after each PUT.
 */
const kibibyte = 1_024;
const mebibyte = kibibyte * kibibyte;
const credentials = { accessKeyId: 'bench', secretAccessKey: 'bench-secret' };
const bucket = 'bench';

interface Candidate {
  name: string;
  client: S3Client;
  folder: string;
  syncs: boolean;
  stop(): Promise<void>;
}

interface Command {
  args: (port: number, folder: string) => string[];
  environment?: Record<string, string>;
}

const ownKeys = {
  STORE_ACCESS_KEY_ID: credentials.accessKeyId,
  STORE_SECRET_ACCESS_KEY: credentials.secretAccessKey,
};
const commands: Record<string, Command> = {
  store: { args: (port, folder) => ['-address', `127.0.0.1:${port}`, folder], environment: ownKeys },
  'store-relaxed': {
    args: (port, folder) => ['-address', `127.0.0.1:${port}`, '-relaxed', folder],
    environment: ownKeys,
  },
  versitygw: {
    args: (port, folder) => ['--port', `127.0.0.1:${port}`, '--quiet', 'posix', folder],
    environment: { ROOT_ACCESS_KEY: credentials.accessKeyId, ROOT_SECRET_KEY: credentials.secretAccessKey },
  },
  minio: {
    args: (port, folder) => ['server', '--quiet', '--address', `127.0.0.1:${port}`, folder],
    environment: { MINIO_ROOT_USER: credentials.accessKeyId, MINIO_ROOT_PASSWORD: credentials.secretAccessKey },
  },
};

async function start(argument: string): Promise<Candidate> {
  const [name = '', path = ''] = argument.split('=');
  const [kind = ''] = name.split('+');
  const command = commands[kind];
  if (command === undefined) throw new Error(`${name} is none of ${Object.keys(commands).join(', ')}`);
  const folder = mkdtempSync(join(process.env.ATRIUM_BENCH_FOLDER ?? tmpdir(), `atrium-bench-${kind}-`));
  const port = await choosePort();
  const child = spawn(path, command.args(port, folder), {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...command.environment },
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const client = new S3Client({
    endpoint: `http://127.0.0.1:${port}`,
    region: 'us-east-1',
    credentials,
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  await waitUntil(() => client.send(new CreateBucketCommand({ Bucket: bucket })), {
    title: name,
    report: () => undefined,
    timeoutMs: 60_000,
    signal: new AbortController().signal,
    assertAlive: () => undefined,
  });
  return {
    name,
    client,
    folder: join(folder, bucket),
    syncs: name.endsWith('+sync'),
    async stop() {
      client.destroy();
      child.kill('SIGTERM');
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function put({ client, folder, syncs }: Candidate, key: string, bytes: Buffer): Promise<void> {
  await client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: bytes }));
  if (!syncs) return;
  for (const path of [join(folder, key), folder]) {
    const file = await open(path, 'r');
    await file.sync();
    await file.close();
  }
}

async function get({ client }: Candidate, key: string): Promise<void> {
  const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: key }));
  await Body?.transformToByteArray();
}

type Work = (candidate: Candidate, round: number) => Promise<unknown>;

const small = randomBytes(kibibyte);
const large = randomBytes(8 * mebibyte);
const sixteen = Array.from({ length: 16 }, (_, n) => n);
const works: { name: string; rounds: number; work: Work }[] = [
  { name: 'PUT of 1 KiB', rounds: 200, work: (store, round) => put(store, `small-${round}`, small) },
  {
    name: '16 PUTs of 1 KiB at once',
    rounds: 40,
    work: (store, round) => Promise.all(sixteen.map((n) => put(store, `many-${round}-${n}`, small))),
  },
  { name: 'PUT of 8 MiB', rounds: 20, work: (store, round) => put(store, `large-${round}`, large) },
  { name: 'GET of 1 KiB', rounds: 200, work: (store, round) => get(store, `small-${round}`) },
  { name: 'GET of 8 MiB', rounds: 20, work: (store, round) => get(store, `large-${round}`) },
  {
    name: 'DELETE',
    rounds: 200,
    work: ({ client }, round) => client.send(new DeleteObjectCommand({ Bucket: bucket, Key: `small-${round}` })),
  },
];

/** Runs all in turn, so that other load on the machine affects all. */
async function compare(candidates: Candidate[], { name, rounds, work }: (typeof works)[number]): Promise<void> {
  const times = new Map(candidates.map((candidate) => [candidate, [] as number[]]));
  for (let round = 0; round < rounds; round++) {
    for (const [candidate, taken] of times) {
      const begin = performance.now();
      await work(candidate, round);
      taken.push(performance.now() - begin);
    }
  }
  const medians = [...times].map(([candidate, taken]) => ({
    candidate,
    ms: quantile(taken, 0.5),
    p95: quantile(taken, 0.95),
  }));
  const reference = medians[0]?.ms ?? 0;
  const line = medians.map(
    ({ candidate, ms, p95 }) =>
      `${candidate.name} ${(ms / reference).toFixed(2)} (${ms.toFixed(2)} ms, p95 ${p95.toFixed(1)})`,
  );
  console.log(`${name}: ${line.join(' · ')}`);
}

await using running = new AsyncDisposableStack();
const candidates: Candidate[] = [];
for (const argument of process.argv.slice(2)) {
  const candidate = await start(argument);
  running.defer(() => candidate.stop());
  candidates.push(candidate);
}
for (const candidate of candidates) for (let n = 0; n < 50; n++) await put(candidate, `warm-${n}`, small);
for (const work of works) await compare(candidates, work);
