import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import mysql from 'mysql2/promise';
import { CommandError, runCommand } from './commands.ts';
import { type Durability, findProgram, type StackContext } from './context.ts';
import { StackError } from './errors.ts';
import { canInstall, installPackages } from './install.ts';
import { type Accounts, databaseName, readOrMakeAccounts, setupStatements } from './mariadbAccounts.ts';
import { choosePort } from './ports.ts';
import { timed } from './report.ts';
import { type Service, serviceLog, startService } from './services.ts';
import { giveTo, type ServiceUser, serviceFolder, serviceUser } from './users.ts';
import { waitUntil } from './waiting.ts';

const usualPort = 3306;
const startTimeoutMs = 120_000; // a recovery after a power cut replays the redo log first

export interface MariaDb {
  service: Service;
  port: number;
  address: string;
  /** The running Atrium's account. */
  url: string;
  /** The account that creates and changes tables. */
  ownerUrl: string;
}

/**
 * What is needed of the packages: the server, the script that fills a data directory, and a tool that the script calls.
 */
const packages = ['mariadb-server-core', 'mariadb-client-core'];
const programNames = ['mariadbd', 'mariadb-install-db', 'my_print_defaults'] as const;

export interface MariaDbPrograms {
  server: string;
  installer: string;
}

function findMariaDb(context: StackContext): MariaDbPrograms | undefined {
  const [server, installer, helper] = programNames.map((name) => findProgram(name, context.environment));
  return server !== undefined && installer !== undefined && helper !== undefined ? { server, installer } : undefined;
}

/**
 * Gets MariaDB, on Debian and Ubuntu by installing it when root asks: its programs alone, without the system service.
 */
export async function getMariaDb(context: StackContext): Promise<MariaDbPrograms> {
  const found = findMariaDb(context);
  if (found !== undefined) return found;
  if (canInstall(context)) await installPackages(context, packages, 'MariaDB');
  const installed = findMariaDb(context);
  if (installed !== undefined) return installed;
  throw new StackError(
    `MariaDB is missing. Install it (Debian and Ubuntu: apt-get install ${packages.join(' ')}; macOS: brew install mariadb), or set ATRIUM_DATABASE_URL.`,
  );
}

/**
 * A private MariaDB with a data directory, port and socket of its own; not the system's service. After `former` it is
 * where that was.
 */
export async function startMariaDb(
  context: StackContext,
  programs: MariaDbPrograms,
  former?: Pick<MariaDb, 'port'>,
): Promise<MariaDb> {
  const user = serviceUser(context, 'database');
  const folder = serviceFolder(context, 'database', user);
  const dataFolder = join(folder, 'data');
  if (!existsSync(dataFolder)) await initialise(context, programs.installer, { folder, user, name: 'database' });

  const accounts = readOrMakeAccounts(context);
  const setupFile = join(folder, 'setup.sql');
  writeFileSync(setupFile, setupStatements(accounts, [databaseName, ...(context.furtherDatabases ?? [])]), {
    mode: 0o600,
  });
  giveTo(setupFile, user);
  const temporaryFolder = join(folder, 'tmp');
  mkdirSync(temporaryFolder, { recursive: true, mode: 0o700 });
  giveTo(temporaryFolder, user);

  return timed(context.report, { done: 'MariaDB started' }, async () => {
    const port = former?.port ?? (await choosePort(context.ports === 'usual' ? usualPort : undefined));
    const service = await startService(context, {
      name: 'database',
      title: 'MariaDB',
      command: programs.server,
      args: [
        ...serverArguments(dataFolder, temporaryFolder, port, setupFile),
        ...durabilityArguments(context.durability),
      ],
      cwd: folder,
      environment: {},
      user,
    });
    const urlOf = ({ user, password }: Accounts['app']) =>
      `mysql://${user}:${password}@127.0.0.1:${port}/${databaseName}`;
    const url = urlOf(accounts.app);
    try {
      await waitUntil(() => assertAnswers(url), {
        ...context,
        title: 'MariaDB',
        timeoutMs: startTimeoutMs,
        assertAlive: service.assertAlive,
      });
    } catch (error) {
      await service.stop();
      throw error;
    }
    return { service, port, address: `127.0.0.1:${port}`, url, ownerUrl: urlOf(accounts.owner) };
  });
}

/**
 * Fills a new data directory beside its final place, so that a start that is killed here begins afresh the next time.
 */
export async function initialise(
  context: StackContext,
  installer: string,
  { folder, user, name }: { folder: string; user: ServiceUser | undefined; name: string },
): Promise<void> {
  const unfinished = join(folder, 'data.new');
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  giveTo(unfinished, user);
  const args = [
    '--no-defaults',
    `--datadir=${unfinished}`,
    '--auth-root-authentication-method=normal',
    '--skip-test-db',
  ];
  try {
    await timed(context.report, { done: 'MariaDB initialised' }, () =>
      runCommand(installer, args, {
        logFile: serviceLog(context, name),
        environment: context.environment,
        signal: context.signal,
        cwd: folder,
        user,
      }),
    );
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new StackError(
      `MariaDB could not be initialised: ${error.reason} — the whole log is ${serviceLog(context, name)}`,
    );
  }
  renameSync(unfinished, join(folder, 'data'));
}

function serverArguments(dataFolder: string, temporaryFolder: string, port: number, setupFile: string): string[] {
  return [
    '--no-defaults',
    `--datadir=${dataFolder}`,
    // A server that starts removes temporary tables from its folder, and would remove those of its neighbours.
    `--tmpdir=${temporaryFolder}`,
    '--bind-address=127.0.0.1',
    `--port=${port}`,
    '--socket=mariadb.sock', // within the data directory: a full path can be too long for a socket
    `--pid-file=mariadb.pid`,
    `--init-file=${setupFile}`,
    '--skip-name-resolve',
    '--character-set-server=utf8mb4',
    '--max-allowed-packet=64M',
    '--max-connections=300',
    '--innodb-buffer-pool-size=256M',
    '--innodb-log-file-size=256M',
    '--performance-schema=OFF',
  ];
}

export function durabilityArguments(durability: Durability = 'full'): string[] {
  if (durability === 'full') return ['--innodb-flush-log-at-trx-commit=1'];
  return ['--innodb-flush-log-at-trx-commit=0', '--skip-innodb-doublewrite', '--sync-frm=0'];
}

export async function assertAnswers(url: string): Promise<void> {
  const connection = await mysql.createConnection({ uri: url, connectTimeout: 2_000 });
  try {
    await connection.query('SELECT 1');
  } finally {
    await connection.end();
  }
}
