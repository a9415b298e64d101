import { existsSync, globSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CommandError, runCommand } from '../../stack/commands.ts';
import { findProgram, type StackContext } from '../../stack/context.ts';
import { StackError } from '../../stack/errors.ts';
import { waitForLock } from '../../stack/fileLock.mjs';
import { isReachableByOthers, makeSharedFolder } from '../../stack/folders.ts';
import { canInstall, installPackages } from '../../stack/install.ts';
import { type Accounts, accountAt, readOrMakeAccounts, rootStatement } from '../../stack/mariadbAccounts.ts';
import { assertAnswers } from '../../stack/mariadbServer.ts';
import { choosePort } from '../../stack/ports.ts';
import { timed } from '../../stack/report.ts';
import { serviceLog, startService } from '../../stack/services.ts';
import { readOrMakeTenantAccounts, tenantSetupStatements } from '../../stack/tenantAccounts.ts';
import { giveTo, serviceFolder, serviceUser } from '../../stack/users.ts';
import { waitUntil } from '../../stack/waiting.ts';

/** MySQL is only in Debian's unstable release. */
const release = 'sid';
const startTimeoutMs = 120_000;

export interface MySql {
  url: string;
  ownerUrl: string;
  stop(): Promise<void>;
}

interface MySqlOptions {
  /** Names as GRANT takes them. The accounts get their rights on these. */
  databases: string[];
  /** More arguments of the server, for example the binary log for measurements. */
  args?: string[];
}

/** A private MySQL with its own data directory and port, and the same two accounts as the embedded database. */
export async function startMySql(context: StackContext, { databases, args = [] }: MySqlOptions): Promise<MySql> {
  const accounts = readOrMakeAccounts(context);
  const urlOf = (port: number, account: Accounts['app']) =>
    `mysql://${account.user}:${account.password}@127.0.0.1:${port}/atrium`;
  const { port, stop } = await runServer(context, {
    name: 'mysql',
    user: 'database',
    setup: setupStatements(accounts, databases),
    args: () => args,
    probe: (at) => urlOf(at, accounts.owner),
  });
  return { url: urlOf(port, accounts.app), ownerUrl: urlOf(port, accounts.owner), stop };
}

/** A private MySQL for the databases of spaces, with a port for administrators. */
export async function startTenantMySql(
  context: StackContext,
): Promise<{ url: string; adminPort: number; stop(): Promise<void> }> {
  const accounts = readOrMakeTenantAccounts(context);
  const { user, password } = accounts.admin;
  const urlOf = (at: number) => `mysql://${user}:${password}@127.0.0.1:${at}/`;
  const adminPort = await choosePort();
  const { port, stop } = await runServer(context, {
    name: 'tenant-mysql',
    user: 'tenants',
    setup: tenantSetupStatements(accounts, 'mysql'),
    args: () => [
      '--admin-address=127.0.0.1',
      `--admin-port=${adminPort}`,
      '--local-infile=OFF',
      '--event-scheduler=DISABLED',
      '--log-bin-trust-function-creators=1',
      '--disabled-storage-engines=MEMORY,MyISAM,MERGE,CSV,ARCHIVE,BLACKHOLE,FEDERATED',
      '--performance-schema=ON', // MySQL's default; the watchdog reads it
    ],
    probe: () => urlOf(adminPort),
  });
  return { url: urlOf(port), adminPort, stop };
}

interface ServerOptions {
  /** The name of its folder and log. */
  name: string;
  /** The service whose user it runs as. */
  user: string;
  setup: string;
  args(): string[];
  /** The URL with which to check that the server answers. */
  probe(port: number): string;
}

async function runServer(
  context: StackContext,
  { name, user: service, setup, args, probe }: ServerOptions,
): Promise<{ port: number; stop(): Promise<void> }> {
  const command = serverCommand(await getMySql(context));
  const user = serviceUser(context, service);
  const folder = serviceFolder(context, name, user);
  const data = join(folder, 'data');
  const setupFile = join(folder, 'setup.sql');
  writeFileSync(setupFile, setup, { mode: 0o600 });
  giveTo(setupFile, user);

  const initialise = [...command, `--datadir=${data}`, '--initialize-insecure'];
  const options = {
    logFile: serviceLog(context, name),
    environment: context.environment,
    signal: context.signal,
    cwd: folder,
  };
  if (!existsSync(data)) {
    const [program = '', ...rest] = initialise;
    await timed(context.report, { done: 'MySQL initialised' }, () =>
      runCommand(program, rest, { ...options, ...(user !== undefined && { user }) }),
    );
  }
  return timed(context.report, { done: 'MySQL started' }, async () => {
    const port = await choosePort(undefined);
    const [program = '', ...rest] = command;
    const running = await startService(context, {
      name,
      title: 'MySQL',
      command: program,
      args: [...rest, ...serverArguments(data, port, setupFile), ...args()],
      cwd: folder,
      environment: {},
      user,
    });
    await waitUntil(() => assertAnswers(probe(port)), {
      ...context,
      title: 'MySQL',
      timeoutMs: startTimeoutMs,
      assertAlive: running.assertAlive,
    });
    return { port, stop: () => running.stop() };
  });
}

/** The folder with Debian's package and its dependencies. It is made once for this machine. */
export async function getMySql(context: StackContext): Promise<string> {
  // The server's user usually cannot enter root's cache folder.
  mkdirSync(context.cacheDir, { recursive: true });
  const isOpen = process.getuid?.() !== 0 || isReachableByOthers(context.cacheDir);
  const folder = join(isOpen ? context.cacheDir : makeSharedFolder('programs'), `mysql-${release}`);
  if (existsSync(folder)) return folder;
  if (!canInstall(context)) {
    throw new StackError(
      'MySQL can be fetched by root on Debian and Ubuntu. Elsewhere start one (8.4 or later) and name it by ATRIUM_DATABASE_URL.',
    );
  }
  const lock = await waitForLock(`${folder}.lock`, {
    signal: context.signal,
    onWait: (owner) => context.report(`Waiting for process ${owner.pid}, which is getting MySQL …`),
  });
  try {
    if (!existsSync(folder)) await bootstrap(context, folder);
    return folder;
  } finally {
    lock.release();
  }
}

async function bootstrap(context: StackContext, folder: string): Promise<void> {
  const find = () => findProgram('debootstrap', context.environment);
  if (find() === undefined) {
    await installPackages(context, ['debootstrap', 'debian-archive-keyring'], 'debootstrap');
  }
  const unfinished = `${folder}.new`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o755 });
  const logFile = serviceLog(context, 'debootstrap');
  const { environment, signal } = context;
  try {
    await timed(context.report, { announce: 'Getting MySQL, once for this machine', done: 'Got MySQL' }, () =>
      runCommand(find() ?? 'debootstrap', ['--variant=minbase', '--include=mysql-server-core', release, unfinished], {
        logFile,
        environment,
        signal,
      }),
    );
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new StackError(`MySQL could not be fetched: ${error.reason} — the whole log is ${logFile}`);
  }
  for (const kept of ['var/cache/apt', 'var/lib/apt']) {
    rmSync(join(unfinished, kept), { recursive: true, force: true });
  }
  renameSync(unfinished, folder);
}

/** Runs the program with the libraries beside it. This needs neither root nor chroot, and works with data anywhere. */
function serverCommand(folder: string): string[] {
  const [loader] = globSync('usr/lib/*-linux-gnu*/ld-linux-*.so.*', { cwd: folder });
  if (loader === undefined) throw new StackError(`${folder} is not complete. Remove it, then start again.`);
  return [
    join(folder, loader),
    '--library-path',
    [dirname(join(folder, loader)), join(folder, 'usr/lib/mysql/private')].join(':'),
    join(folder, 'usr/sbin/mysqld'),
    '--no-defaults',
    `--basedir=${join(folder, 'usr')}`,
  ];
}

function serverArguments(data: string, port: number, setupFile: string): string[] {
  return [
    `--datadir=${data}`,
    '--bind-address=127.0.0.1',
    `--port=${port}`,
    '--socket=mysql.sock', // relative to the data directory, since a full path can be too long for a socket
    '--pid-file=mysql.pid',
    `--init-file=${setupFile}`,
    '--secure-file-priv=NULL',
    '--mysqlx=OFF',
    '--skip-name-resolve',
    '--skip-log-bin',
    '--max-allowed-packet=64M',
    '--max-connections=500',
    '--innodb-buffer-pool-size=256M',
    '--innodb-flush-log-at-trx-commit=0',
    '--skip-innodb-doublewrite',
    '--performance-schema=OFF',
  ];
}

function setupStatements({ owner, app, root }: Accounts, databases: string[]): string {
  return [
    'CREATE DATABASE IF NOT EXISTS atrium CHARACTER SET utf8mb4;',
    ...[owner, app].map(
      (account) => `CREATE USER IF NOT EXISTS ${accountAt(account)} IDENTIFIED BY '${account.password}';`,
    ),
    ...databases.flatMap((name) => [
      `GRANT ALL PRIVILEGES ON \`${name}\`.* TO ${accountAt(owner)};`,
      `GRANT SELECT, INSERT, UPDATE, DELETE ON \`${name}\`.* TO ${accountAt(app)};`,
    ]),
    rootStatement(root),
    '',
  ].join('\n');
}
