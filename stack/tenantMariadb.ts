import { join } from 'node:path';
import type { StackContext } from './context.ts';
import { type MariaDbPrograms, prepareServer, startServer } from './mariadbServer.ts';
import { choosePort } from './ports.ts';
import type { Service } from './services.ts';
import { readOrMakeTenantAccounts, tenantSetupStatements } from './tenantAccounts.ts';

const usualPort = 3307;

export interface TenantMariaDb {
  service: Service;
  port: number;
  /** Lets Atrium in when tenants have taken every connection. */
  adminPort: number;
  address: string;
  /** Where it has its data. */
  folder: string;
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
  const accounts = readOrMakeTenantAccounts(context);
  const setup = tenantSetupStatements(accounts, 'mariadb');
  const place = await prepareServer(context, programs, {
    name: 'tenants',
    setup,
    folders: ['files'],
    initialArgs: undoFiles,
  });
  const port = former?.port ?? (await choosePort(context.ports === 'usual' ? usualPort : undefined));
  const adminPort = former?.adminPort ?? (await choosePort());
  const { user, password } = accounts.admin;
  const urlAt = (at: number) => `mysql://${user}:${password}@127.0.0.1:${at}/`;
  const service = await startServer(context, programs, place, {
    title: 'MariaDB for databases of spaces',
    port,
    args: [
      `--extra-port=${adminPort}`,
      '--extra-max-connections=20',
      ...filesOfNobody(place.folder),
      ...undoFiles,
      ...sharesOfTenants,
    ],
    probe: urlAt(adminPort),
  });
  return { service, port, adminPort, folder: place.folder, address: `127.0.0.1:${port}`, url: urlAt(port) };
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

/** What transactions put aside is in files of its own, which get smaller again. Older data gets them with a restart. */
const undoFiles = ['--innodb-undo-tablespaces=3'];

/** What one connection can take. `maximum-` holds whatever a session sets. */
const sharesOfTenants = [
  '--max-connections=400',
  // A thread that was set back for what its tenant takes of the CPU is nobody else's.
  '--thread-handling=one-thread-per-connection',
  '--thread-cache-size=0',
  '--max-allowed-packet=16M',
  // Each takes memory of its session, which is bounded: so nobody uses up those of all.
  '--max-prepared-stmt-count=1048576',
  '--innodb-buffer-pool-size=64M',
  '--innodb-log-file-size=48M',
  '--innodb-undo-log-truncate=ON',
  '--innodb-max-undo-log-size=64M',
  '--innodb-temp-data-file-path=ibtmp1:12M:autoextend:max:2G',
  '--max-session-mem-used=64M',
  '--maximum-max-session-mem-used=64M',
  '--maximum-sort-buffer-size=8M',
  '--maximum-join-buffer-size=8M',
  '--maximum-tmp-table-size=32M',
  // What a statement puts aside on the disk for one table of its own.
  '--tmp-disk-table-size=512M',
  '--maximum-tmp-disk-table-size=512M',
  '--maximum-max-heap-table-size=32M',
  // That is for each table in memory, of which there could be any number.
  '--enforce-storage-engine=InnoDB',
  '--maximum-read-buffer-size=2M',
  '--maximum-read-rnd-buffer-size=8M',
  '--maximum-bulk-insert-buffer-size=16M',
  '--maximum-myisam-sort-buffer-size=32M',
];
