import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadLaunchConfig } from '../../config/launch.ts';
import { StackError } from '../../stack/errors.ts';
import { prepareDataDir, prepareServicesDir, removeDataDir } from '../../stack/folders.ts';
import { getMySql } from './mysql.ts';

/** Gets MySQL for `npm run test:mysql`. If that is impossible here, exits with code 3 and prints the reason. */
const cannotBeHad = 3;

const dataDir = mkdtempSync(join(tmpdir(), 'atrium-mysql-'));
let hasFailed = false;
try {
  prepareDataDir(dataDir);
  await getMySql({
    ...loadLaunchConfig({ ...process.env, ATRIUM_DATA_DIR: dataDir }),
    servicesDir: prepareServicesDir(dataDir),
    ports: 'free',
    bucket: '',
    report: (line) => process.stderr.write(`${line}\n`),
    signal: new AbortController().signal,
  });
} catch (error) {
  if (!(error instanceof StackError)) throw error;
  process.stdout.write(`${error.message}\n`);
  hasFailed = true;
} finally {
  if (!hasFailed) removeDataDir(dataDir); // otherwise keep the log that the reason names
}
if (hasFailed) process.exitCode = cannotBeHad;
