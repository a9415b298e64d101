import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StackContext } from './context.ts';
import { assertAnswers, durabilityArguments, initialise, type MariaDbPrograms } from './mariadb.ts';
import { choosePort } from './ports.ts';
import { timed } from './report.ts';
import { type Service, startService } from './services.ts';
import { readOrMakeTenantAccounts, tenantSetupStatements } from './tenantAccounts.ts';
import { giveTo, serviceFolder, serviceUser } from './users.ts';
import { waitUntil } from './waiting.ts';

const usualPort = 3307;
const startTimeoutMs = 120_000;

export interface TenantMariaDb {
  service: Service;
  port: number;
  /** Lets Atrium in when tenants have taken every connection. */
  adminPort: number;
  address: string;
  /** Atrium's account, which makes databases and accounts there. */
  url: string;
}

/**
 * The server for the databases of spaces, which is no other's: locks, memory and connections are a server's, and not a
 * database's. After `former` it is where that was.
 */
export async function startTenantMariaDb(
  context: StackContext,
  programs: MariaDbPrograms,
  former?: Pick<TenantMariaDb, 'port' | 'adminPort'>,
): Promise<TenantMariaDb> {
  const name = 'tenants';
  const user = serviceUser(context, name);
  const folder = serviceFolder(context, name, user);
  const dataFolder = join(folder, 'data');
  if (!existsSync(dataFolder)) await initialise(context, programs.installer, { folder, user, name });

  const accounts = readOrMakeTenantAccounts(context);
  const setupFile = join(folder, 'setup.sql');
  writeFileSync(setupFile, tenantSetupStatements(accounts, 'mariadb'), { mode: 0o600 });
  giveTo(setupFile, user);
  for (const part of ['tmp', 'files']) {
    mkdirSync(join(folder, part), { recursive: true, mode: 0o700 });
    giveTo(join(folder, part), user);
  }

  return timed(context.report, { done: 'MariaDB for databases of spaces started' }, async () => {
    const port = former?.port ?? (await choosePort(context.ports === 'usual' ? usualPort : undefined));
    const adminPort = former?.adminPort ?? (await choosePort());
    const service = await startService(context, {
      name,
      title: 'MariaDB for databases of spaces',
      command: programs.server,
      args: [...serverArguments({ folder, port, adminPort, setupFile }), ...durabilityArguments(context.durability)],
      cwd: folder,
      environment: {},
      user,
    });
    const { user: admin, password } = accounts.admin;
    const urlAt = (at: number) => `mysql://${admin}:${password}@127.0.0.1:${at}/`;
    try {
      await waitUntil(() => assertAnswers(urlAt(adminPort)), {
        ...context,
        title: 'MariaDB for databases of spaces',
        timeoutMs: startTimeoutMs,
        assertAlive: service.assertAlive,
      });
    } catch (error) {
      await service.stop();
      throw error;
    }
    return { service, port, adminPort, address: `127.0.0.1:${port}`, url: urlAt(port) };
  });
}

interface Place {
  folder: string;
  port: number;
  adminPort: number;
  setupFile: string;
}

function serverArguments({ folder, port, adminPort, setupFile }: Place): string[] {
  return [
    '--no-defaults',
    `--datadir=${join(folder, 'data')}`,
    `--tmpdir=${join(folder, 'tmp')}`,
    '--bind-address=127.0.0.1',
    `--port=${port}`,
    `--extra-port=${adminPort}`,
    '--extra-max-connections=20',
    '--socket=mariadb.sock', // within the data directory: a full path can be too long for a socket
    '--pid-file=mariadb.pid',
    `--init-file=${setupFile}`,
    '--skip-name-resolve',
    '--character-set-server=utf8mb4',
    '--performance-schema=OFF',
    ...filesOfNobody(folder),
    ...sharesOfTenants,
  ];
}

/** No statement reads or writes a file of the machine, nor of the client's, and nothing runs by itself. */
function filesOfNobody(folder: string): string[] {
  return [
    `--secure-file-priv=${join(folder, 'files')}`,
    '--local-infile=0',
    '--symbolic-links=0',
    '--event-scheduler=DISABLED',
  ];
}

/** What one connection can take. `maximum-` holds whatever a session sets. */
const sharesOfTenants = [
  '--max-connections=400',
  '--max-allowed-packet=16M',
  // Each takes memory of its session, which is bounded: so nobody uses up those of all.
  '--max-prepared-stmt-count=1048576',
  '--innodb-buffer-pool-size=64M',
  '--innodb-log-file-size=48M',
  '--innodb-temp-data-file-path=ibtmp1:12M:autoextend:max:2G',
  '--max-session-mem-used=64M',
  '--maximum-max-session-mem-used=64M',
  '--maximum-sort-buffer-size=8M',
  '--maximum-join-buffer-size=8M',
  '--maximum-tmp-table-size=32M',
  '--maximum-max-heap-table-size=32M',
  // That is for each table in memory, of which there could be any number.
  '--enforce-storage-engine=InnoDB',
  '--maximum-read-buffer-size=2M',
  '--maximum-read-rnd-buffer-size=8M',
  '--maximum-bulk-insert-buffer-size=16M',
  '--maximum-myisam-sort-buffer-size=32M',
];
