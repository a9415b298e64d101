import { globSync, mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadLaunchConfig } from '../config/launch.ts';
import { openDatabase } from '../models/database.ts';
import { migrate } from '../models/migrate.ts';
import { prepareDataDir, prepareServicesDir, removeDataDir } from '../stack/folders.ts';
import { buildTurn, buildTurnLog, buildWriter, delta } from '../test/builders/turnLog.ts';
import { startMySql } from '../test/support/mysql.ts';

// How much binary log a turn of 200 tokens leaves on MySQL, each token committed by itself, with each kind of row
// image.

const tokens = 200;

async function bytesOfTurn(rowImage: 'FULL' | 'MINIMAL'): Promise<number> {
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
    args: ['--log-bin=binlog', '--log-bin-trust-function-creators=1', `--binlog-row-image=${rowImage}`],
  });
  const database = openDatabase({ database: { url: mysql.ownerUrl, poolSize: 4, silenceMs: 15_000 } });
  try {
    await migrate(database);
    const { turnLog } = buildTurnLog(database);
    const turn = await buildTurn(database);
    const writer = await buildWriter(database, turnLog, turn);
    const files = join(context.servicesDir, 'mysql', 'data', 'binlog.0*');
    const size = () => globSync(files).reduce((sum, file) => sum + statSync(file).size, 0);
    const before = size();
    for (let token = 0; token < tokens; token++) {
      writer.append(delta('p', ` token${token}`));
      await writer.flush();
    }
    await turnLog.close();
    return size() - before;
  } finally {
    await database.close();
    await mysql.stop();
    removeDataDir(dataDir);
  }
}

for (const rowImage of ['FULL', 'MINIMAL'] as const) {
  const bytes = await bytesOfTurn(rowImage);
  console.log(`binlog_row_image=${rowImage}: ${(bytes / 1_000).toFixed(1)} KB for ${tokens} tokens`);
}
