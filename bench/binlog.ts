import { globSync, mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadLaunchConfig } from '../config/launch.ts';
import type { TurnWriter } from '../models/chat/turnLog/turnWriter.ts';
import { openDatabase } from '../models/database/database.ts';
import { migrate } from '../models/migrations/migrate.ts';
import { prepareDataDir, prepareServicesDir, removeDataDir } from '../stack/folders.ts';
import { buildTurn, buildTurnLog, buildWriter, delta } from '../test/builders/turnLog.ts';
import { startMySql } from '../test/support/mysql.ts';

/**
 * Measures how much binary log a turn of 200 tokens leaves on MySQL: alone, with a commit for each token, and beside
 * other turns with a token every 20 ms, which share commits.
 */
const tokens = 200;
const intervalMs = 20;
const streams = 32;

const settings: Record<string, string[]> = {
  'binlog_row_image=FULL': ['--binlog-row-image=FULL'],
  'binlog_row_image=MINIMAL': ['--binlog-row-image=MINIMAL'],
  'MINIMAL with binlog_transaction_compression': ['--binlog-row-image=MINIMAL', '--binlog-transaction-compression=ON'],
};

async function measure(args: string[]): Promise<{ alone: number; together: number }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'atrium-binlog-'));
  prepareDataDir(dataDir);
  const context = {
    ...loadLaunchConfig({ ...process.env, ATRIUM_DATA_DIR: dataDir }),
    servicesDir: prepareServicesDir(dataDir),
    ports: 'free' as const,
    report: () => undefined,
    signal: new AbortController().signal,
  };
  const mysql = await startMySql(context, {
    databases: ['atrium'],
    args: ['--log-bin=binlog', '--log-bin-trust-function-creators=1', ...args],
  });
  const database = openDatabase({ database: { url: mysql.ownerUrl, poolSize: 4, silenceMs: 15_000 } });
  try {
    await migrate(database);
    const { turnLog } = buildTurnLog(database);
    const files = join(context.servicesDir, 'mysql', 'data', 'binlog.0*');
    const size = () => globSync(files).reduce((sum, file) => sum + statSync(file).size, 0);
    const writers = await Promise.all(
      Array.from({ length: streams }, async () => buildWriter(database, turnLog, await buildTurn(database))),
    );
    const [first] = writers as [TurnWriter];
    const atStart = size();
    for (let token = 0; token < tokens; token++) {
      first.append(delta('p', ` token${token}`));
      await first.flush();
    }
    const atHalf = size();
    await Promise.all(writers.map((writer, index) => speak(writer, (index * intervalMs) / streams)));
    await turnLog.close();
    return { alone: atHalf - atStart, together: (size() - atHalf) / streams };
  } finally {
    await database.close();
    await mysql.stop();
    removeDataDir(dataDir);
  }
}

async function speak(writer: TurnWriter, firstMs: number): Promise<void> {
  const startMs = performance.now() + firstMs;
  for (let token = 0; token < tokens; token++) {
    await delay(Math.max(0, startMs + token * intervalMs - performance.now()));
    // Alternates between two parts, so that a slow machine does not join two tokens.
    writer.append(delta(`p${token % 2}`, ` token${token}`));
  }
  await writer.flush();
}

const kilobytes = (bytes: number) => `${(bytes / 1_000).toFixed(1)} KB`;
for (const [name, args] of Object.entries(settings)) {
  const { alone, together } = await measure(args);
  console.log(
    `${name}: ${kilobytes(alone)} for a turn of ${tokens} tokens alone, ${kilobytes(together)} for each of ${streams}`,
  );
}
