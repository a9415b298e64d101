import { execFileSync } from 'node:child_process';
import { globSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import mysql, { type RowDataPacket } from 'mysql2/promise';
import { loadLaunchConfig } from '../../config/launch.ts';
import { findProgram } from '../../stack/context.ts';
import { lockDataDir } from '../../stack/folders.ts';
import { startStack } from '../../stack/index.ts';
import { plainEnvironment } from '../support/atrium.ts';

// A stopped installation as one compressed file, and back.

/** What each start makes again, or nothing needs. */
const leftOut = [
  './logs',
  './run',
  './lock',
  './cache',
  './services/*/data/ib_buffer_pool',
  './services/*/data/ibtmp1',
  './services/computers/.runtime',
  './services/computers/.run',
  './services/computers/.trust',
];
/** The object store keeps what it knows of an object in its file's attributes. */
const attributes = ['--xattrs', '--xattrs-include=user.*'];
const mostBytes = 1_073_741_824;

/** Packs a stopped installation. */
export function pack(dataDir: string, file: string): void {
  for (const server of ['database', 'tenants']) shrink(join(dataDir, 'services', server));
  const excluded = leftOut.map((name) => `--exclude=${name}`);
  const order = ['--sparse', '--numeric-owner', '--sort=name', '--anchored', ...excluded];
  const args = ['--create', ...attributes, ...order, '--directory', dataDir, '.'];
  const archive = execFileSync('tar', args, { maxBuffer: mostBytes });
  const params = {
    [constants.ZSTD_c_compressionLevel]: 19,
    [constants.ZSTD_c_windowLog]: 27, // the longest that every decoder accepts
    [constants.ZSTD_c_enableLongDistanceMatching]: 1,
  };
  writeFileSync(file, zstdCompressSync(archive, { params }));
}

/** Makes the redo log of a stopped MariaDB small. The next start gives it its usual size. */
function shrink(folder: string): void {
  const data = join(folder, 'data');
  const { uid, gid } = statSync(data);
  const undoFiles = readdirSync(data).filter((name) => /^undo\d+$/.test(name)).length;
  const args = ['--no-defaults', '--bootstrap', `--datadir=${data}`, `--innodb-undo-tablespaces=${undoFiles}`];
  const small = ['--innodb-log-file-size=4M', '--innodb-fast-shutdown=0'];
  const options = { uid, gid, cwd: folder, input: '' };
  execFileSync(findProgram('mariadbd', process.env) ?? 'mariadbd', [...args, ...small], { ...options, stdio: 'pipe' });
}

/** How long ago an unpacked installation seems to have stopped. What was soon due then is due now. */
const seemsStoppedMs = 120_000;

/** Unpacks an installation that stopped at `stoppedAt` into an empty folder, and makes it look as if it had stopped two minutes ago. */
export async function unpack(file: string, dataDir: string, stoppedAt: string): Promise<void> {
  const input = zstdDecompressSync(readFileSync(file));
  execFileSync(
    'tar',
    ['--extract', ...attributes, '--no-same-owner', '--preserve-permissions', '--directory', dataDir],
    { input },
  );
  giveHomes(join(dataDir, 'services', 'computers'));
  await moveTimes(dataDir, Date.now() - seemsStoppedMs - Date.parse(stoppedAt));
}

/** Gives each computer's files to its user, or keeps them where files cannot be given to others. */
function giveHomes(folder: string): void {
  for (const name of globSync('*/record.json', { cwd: folder })) {
    const text = readFileSync(join(folder, name), 'utf8');
    const { computerId, uid } = JSON.parse(text) as { computerId: string; uid: number };
    const own = [join(folder, '.homes', computerId), join(folder, computerId, 'processes')];
    try {
      execFileSync('chown', ['-R', `${uid}:${uid}`, ...own], { stdio: 'ignore' });
    } catch {
      writeFileSync(join(folder, name), text.replace(/"uid":\d+/, '"uid":null'));
    }
  }
}

/**
 * Moves all times in the rows. A waiting turn, an invitation and all that is kept for a while would otherwise expire in
 * a stored installation, and a test of it would fail some day.
 */
async function moveTimes(dataDir: string, byMs: number): Promise<void> {
  const launch = loadLaunchConfig(plainEnvironment({ ATRIUM_DATA_DIR: dataDir }));
  const need = { database: true, temporal: false, storage: false };
  const lock = lockDataDir(dataDir);
  const stack = await startStack({ ...launch, computers: false, need, ports: 'free' });
  const connection = await mysql.createConnection({ uri: stack.environment.ATRIUM_DATABASE_MIGRATION_URL });
  try {
    // The ledger's rows cannot be changed, and nothing of them expires.
    const [columns] = await connection.query<RowDataPacket[]>(
      `SELECT c.table_name AS name, c.column_name AS at FROM information_schema.columns c
         JOIN information_schema.tables t USING (table_schema, table_name)
        WHERE c.table_schema = DATABASE() AND c.data_type IN ('datetime', 'timestamp') AND c.is_generated = 'NEVER'
          AND t.table_type = 'BASE TABLE' AND c.table_name NOT IN (
            SELECT event_object_table FROM information_schema.triggers WHERE trigger_schema = DATABASE())`,
    );
    for (const { name, at } of columns) {
      // The latest first, since a row may not take the time of another one where times are unique.
      const moved = `\`${at}\` + INTERVAL ? MICROSECOND`;
      await connection.query(`UPDATE \`${name}\` SET \`${at}\` = ${moved} ORDER BY \`${at}\` DESC`, [byMs * 1_000]);
    }
  } finally {
    await connection.end();
    await stack.stop();
    lock.release();
  }
}
