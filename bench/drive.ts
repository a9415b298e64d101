import { S3Client } from '@aws-sdk/client-s3';
import { loadConfig } from '../config/index.ts';
import { openDatabase } from '../models/database/database.ts';
import { fillFolder } from '../test/builders/driveRows.ts';
import { residentMiB } from '../test/support/processes.ts';
import { startAtrium } from './support/atrium.ts';
import { CpuMeter } from './support/cpuMeter.ts';
import { atriumClient, type BlobClient, sdkClient } from './support/driveClient.ts';
import { startStorageAndDatabase } from './support/stack.ts';
import { quantile, timed } from './support/times.ts';

/**
 * Measures what Atrium's drive costs: `npx node bench/drive.ts`, or only a part, `files` or `tree`. Uploads and
 * downloads alternate between Atrium and, as the reference, the AWS SDK straight to the same object store, from the
 * same process. A ratio of 1 means that Atrium adds nothing. For small files it also prints each program's CPU time,
 * since times say little on a busy machine. `ATRIUM_BENCH_LARGE_MIB` is the size of the large file, 1,024 by default.
 * Then measures the tree in drives of 1,000, 100,000 and 1,000,000 items.
 */
const mebibyte = 1_048_576;
const largeMiB = Number(process.env.ATRIUM_BENCH_LARGE_MIB ?? 1_024);
const sizes = [
  { name: '1 KiB', bytes: 1_024, rounds: 200 },
  { name: '1 MiB', bytes: mebibyte, rounds: 60 },
  { name: `${largeMiB} MiB`, bytes: largeMiB * mebibyte, rounds: 3 },
];
const treeSizes = [1_000, 100_000, 1_000_000];
const folders = 10;

type Direction = 'upload' | 'download';

/** Runs both in turn, so that other load on the machine affects both. */
async function compare(direct: BlobClient, through: BlobClient, direction: Direction, size: (typeof sizes)[number]) {
  const times = { direct: [] as number[], through: [] as number[] };
  const meter = new CpuMeter({ rootPid: process.pid, atriumPid: atrium.pid });
  for (let round = 0; round < size.rounds; round++) {
    const name = `${size.bytes}-${round}`;
    times.direct.push(await timed(() => direct[direction](name, size.bytes)));
    times.through.push(await meter.during(() => timed(() => through[direction](name, size.bytes))));
  }
  const [reference, measured] = [quantile(times.direct, 0.5), quantile(times.through, 0.5)];
  const rate = (elapsedMs: number) => `${(size.bytes / mebibyte / (elapsedMs / 1_000)).toFixed(0)} MiB/s`;
  const detail =
    size.bytes < mebibyte
      ? `${measured.toFixed(1)} ms against ${reference.toFixed(1)} ms`
      : `${rate(measured)} against ${rate(reference)}`;
  const cpuPerGiB = (meter.secondsOf('node') / size.rounds) * ((1_024 * mebibyte) / size.bytes);
  const cost =
    size.bytes < mebibyte ? `; ${meter.each(size.rounds)}` : `; Atrium computed for ${cpuPerGiB.toFixed(1)} s per GiB`;
  console.log(
    `${direction} of ${size.name}: ${(reference / measured).toFixed(2)} of the SDK's speed (${detail}, medians${cost})`,
  );
}

/** The peak memory of a process while `work` runs. */
async function peakMiB(pid: number, work: () => Promise<unknown>): Promise<number> {
  let peak = 0;
  const look = setInterval(() => {
    peak = Math.max(peak, residentMiB(pid));
  }, 50);
  await work();
  clearInterval(look);
  return peak;
}

async function benchTree(items: number): Promise<void> {
  const { id: spaceId } = await call<{ id: string }>('POST', '/api/spaces', { name: `${items} items` });
  for (let n = 0; n < folders; n++) {
    const folder = await call<{ id: string; spaceId: string }>('POST', `/api/spaces/${spaceId}/drive/folders`, {
      path: `/folder ${n}`,
    });
    await fillFolder(database, folder, items / folders, { kind: 'file', idPrefix: `${folder.id}_` });
  }
  const line: string[] = [];
  for (const budget of [200, 5_000]) {
    const path = `/api/spaces/${spaceId}/drive/fs/tree?budget=${budget}`;
    await call('GET', path);
    const times: number[] = [];
    for (let round = 0; round < 15; round++) times.push(await timed(() => call('GET', path)));
    line.push(`${quantile(times, 0.5).toFixed(1)} ms for a budget of ${budget}`);
  }
  console.log(`tree of ${items.toLocaleString('en')} items: ${line.join(', ')} (medians)`);
}

await using running = new AsyncDisposableStack();
const stack = await startStorageAndDatabase();
running.defer(() => stack.stop());
const atrium = await startAtrium({
  ...stack.environment,
  ATRIUM_RATE_LIMIT_PER_MINUTE: '0',
  ATRIUM_LOG_LEVEL: 'warn',
  ATRIUM_DRIVE_QUOTA_MIB: '0',
});
running.defer(() => atrium.stop());
const config = loadConfig({ ...stack.environment, ATRIUM_ENV: 'test', ATRIUM_TEMPORAL_ADDRESS: 'not used here' });
const database = openDatabase(config);
running.defer(() => database.close());
const { endpoint, region, bucket, accessKeyId = '', secretAccessKey = '' } = config.storage;
const s3 = new S3Client({
  ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
  region,
  credentials: { accessKeyId, secretAccessKey },
});
running.defer(() => s3.destroy());

const { call } = atrium;
const { id: spaceId } = await call<{ id: string }>('POST', '/api/spaces', { name: 'Bench' });
const [direct, through] = [sdkClient(s3, bucket), atriumClient(atrium, spaceId)];
for (const client of [direct, through]) {
  for (let n = 0; n < 20; n++) await client.upload(`warm-${n}`, mebibyte / 2);
  await client.upload('warm', 64 * mebibyte);
  await client.download('warm', 64 * mebibyte);
}
const part = process.argv[2];
for (const size of part === 'tree' ? [] : sizes) {
  const before = residentMiB(atrium.pid);
  const peak = await peakMiB(atrium.pid, async () => {
    await compare(direct, through, 'upload', size);
    await compare(direct, through, 'download', size);
  });
  console.log(`  Atrium's memory: ${before.toFixed(0)} MiB before, ${peak.toFixed(0)} MiB at most`);
}
for (const items of part === 'files' ? [] : treeSizes) await benchTree(items);
