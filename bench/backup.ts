import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import mysql from 'mysql2/promise';
import type { PartProgress } from '../backup/pace.ts';
import { nodeFlags } from '../bin/nodeFlags.mjs';
import { startAtrium } from './support/atrium.ts';

/**
 * Measures time and memory of a backup, of the next backup, and of a restore: `npx node bench/backup.ts`. `ROWS_MIB` is
 * the size of the database, `OBJECTS` the number of objects in the bucket. 10240 and 1000000 give ten GiB of rows and a
 * million objects, which take three times that room on the disk.
 */
const rowsMib = Number(process.env.ROWS_MIB ?? 512);
const objectCount = Number(process.env.OBJECTS ?? 10_000);
const objectBytes = 1_000;
/** The size of each row. Turns leave many small rows like these. */
const rowBytes = 512;
const rowsAtOnce = 65_536;
const putsAtOnce = 16;
const sampleMs = 200;

const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'atrium-bench-backup-'));
const place = { ATRIUM_BACKUP_TO: join(folder, 'backups'), ATRIUM_BACKUP_KEY_FILE: join(folder, 'key') };
const atrium = await startAtrium({ ATRIUM_LOG_LEVEL: 'warn', ATRIUM_COMPUTERS: 'off', ...place });
try {
  writeFileSync(place.ATRIUM_BACKUP_KEY_FILE, 'correct horse battery staple', { mode: 0o600 });
  await fillDatabase();
  await fillBucket();
  await measure('first backup', ['backup', '--json'], atrium.environment);
  await measure('next backup', ['backup', '--json'], atrium.environment);
  const dataDir = join(folder, 'restored');
  const elsewhere = { ATRIUM_DATA_DIR: dataDir, ATRIUM_PORT: '0', ATRIUM_COMPUTERS: 'off' };
  await measure('restore', ['restore', '--json'], { ...process.env, ...place, ...elsewhere });
} finally {
  await atrium.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** Fills a table of its own with rows that do not compress. */
async function fillDatabase(): Promise<void> {
  const { ATRIUM_DATABASE_MIGRATION_URL: owner, ATRIUM_DATABASE_URL: url = '' } = atrium.environment;
  const connection = await mysql.createConnection({ uri: owner ?? url });
  await connection.query('CREATE TABLE bench_rows (id INT PRIMARY KEY AUTO_INCREMENT, words VARBINARY(600) NOT NULL)');
  await connection.query('CREATE TABLE bench_numbers (n INT PRIMARY KEY)');
  const numbers = Array.from({ length: 256 }, (_, n) => `(${n})`).join(', ');
  await connection.query(`INSERT INTO bench_numbers VALUES ${numbers}`);
  const random = Array.from({ length: rowBytes / 32 }, () => 'UNHEX(SHA2(RAND(), 256))').join(', ');
  const count = Math.ceil((rowsMib * 1_048_576) / rowBytes);
  for (let done = 0; done < count; done += rowsAtOnce) {
    await connection.query(
      `INSERT INTO bench_rows (words) SELECT CONCAT(${random}) FROM bench_numbers a, bench_numbers b LIMIT ?`,
      [Math.min(rowsAtOnce, count - done)],
    );
  }
  await connection.query('ANALYZE TABLE bench_rows');
  connection.destroy();
  console.log(`${count} rows of ${rowBytes} bytes`);
}

async function fillBucket(): Promise<void> {
  const { environment } = atrium;
  const client = new S3Client({
    endpoint: String(environment.ATRIUM_S3_ENDPOINT),
    region: environment.ATRIUM_S3_REGION ?? 'us-east-1',
    forcePathStyle: true,
    credentials: {
      accessKeyId: String(environment.ATRIUM_S3_ACCESS_KEY_ID),
      secretAccessKey: String(environment.ATRIUM_S3_SECRET_ACCESS_KEY),
    },
  });
  const connection = await mysql.createConnection({ uri: environment.ATRIUM_DATABASE_URL ?? '' });
  let left = objectCount;
  const put = async () => {
    for (; left > 0; ) {
      const keys = Array.from({ length: Math.min(100, left) }, () => randomBytes(20).toString('hex'));
      left -= keys.length;
      const rows = keys.map((key) => [key, 'spc_bench', 'kept', 1, objectBytes, new Date()]);
      const columns = 'object_key, space_id, state, is_complete, size, created_at';
      await connection.query(`INSERT INTO drive_objects (${columns}) VALUES ?`, [rows]);
      for (const Key of keys) {
        const Body = randomBytes(objectBytes);
        await client.send(new PutObjectCommand({ Bucket: environment.ATRIUM_S3_BUCKET, Key, Body }));
      }
    }
  };
  await Promise.all(Array.from({ length: putsAtOnce }, put));
  connection.destroy();
  client.destroy();
  console.log(`${objectCount} objects of ${objectBytes} bytes`);
}

/** Runs a command of Atrium. Prints its time, CPU and memory, and the time of each part. */
async function measure(name: string, args: string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const begun = performance.now();
  const program = spawn(process.execPath, [...nodeFlags, join(root, 'bin', 'atrium.ts'), ...args], {
    env: environment,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  const parts = new Map<string, number>();
  createInterface({ input: program.stderr }).on('line', (line) => {
    if (!line.startsWith('{"progress"')) said = `${said}${line}\n`.slice(-2_000);
    else {
      const { part, done, bytesPerSecond } = (JSON.parse(line) as { progress: PartProgress }).progress;
      if (bytesPerSecond > 0) parts.set(part, done / bytesPerSecond);
    }
  });
  let seen = { peakKib: 0, cpuSeconds: 0 };
  const sampling = setInterval(() => {
    const use = useOf(program.pid);
    // A process that has just ended shows no memory.
    if (use !== undefined && use.peakKib > 0) seen = use;
  }, sampleMs);
  const code = await new Promise<number | null>((resolve) => program.once('exit', resolve));
  clearInterval(sampling);
  if (code !== 0) throw new Error(`${name} ended with ${code}: ${said}`);
  const seconds = (performance.now() - begun) / 1_000;
  const each = [...parts].map(([part, its]) => `${part} ${its.toFixed(1)} s`).join(', ');
  const facts = `${seen.cpuSeconds.toFixed(1)} s of a core, ${(seen.peakKib / 1_024).toFixed(0)} MiB`;
  console.log(`${name.padEnd(13)} ${seconds.toFixed(1).padStart(8)} s, ${facts} (${each})`);
}

/** A process's peak memory and CPU time. Undefined once it has ended. */
function useOf(pid: number | undefined): { peakKib: number; cpuSeconds: number } | undefined {
  try {
    const peakKib = Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
    const [utime = 0, stime = 0] =
      readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ').slice(11).map(Number) ?? [];
    return { peakKib, cpuSeconds: (utime + stime) / 100 };
  } catch {
    return undefined;
  }
}
