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
  /** Lets Atrium connect when tenants have taken every connection. */
  adminPort: number;
  address: string;
  folder: string;
  /** For Atrium's account, which makes databases and accounts there. */
  url: string;
}

/**
 * Starts the server for the databases of spaces. It is separate from the product's own, since databases on one server
 * share locks, memory and connections. With `former` it reuses those ports.
 */
export async function startTenantMariaDb(
  context: StackContext,
  programs: MariaDbPrograms,
  former?: Pick<TenantMariaDb, 'port' | 'adminPort'>,
): Promise<TenantMariaDb> {
  const accounts = readOrMakeTenantAccounts(context);
  const setup = tenantSetupStatements(accounts, 'mariadb');
  const title = 'MariaDB for databases of spaces';
  const place = await prepareServer(context, programs, {
    name: 'tenants',
    title,
    setup,
    folders: ['files'],
    initialArgs: undoFiles,
  });
  const port = former?.port ?? (await choosePort(context.ports === 'usual' ? usualPort : undefined));
  const adminPort = former?.adminPort ?? (await choosePort());
  const { user, password } = accounts.admin;
  const urlAt = (at: number) => `mysql://${user}:${password}@127.0.0.1:${at}/`;
  const service = await startServer(context, programs, place, {
    title,
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

/** No statement reads or writes files of the machine or of the client, and no event runs by itself. */
function filesOfNobody(folder: string): string[] {
  return [
    `--secure-file-priv=${join(folder, 'files')}`,
    '--local-infile=0',
    '--symbolic-links=0',
    '--event-scheduler=DISABLED',
  ];
}

/** Keeps undo logs in files of their own, which can shrink again. An older data directory gets them at a restart. */
const undoFiles = ['--innodb-undo-tablespaces=3'];

/** Limits of one connection. A session cannot exceed the `maximum-` values. */
const sharesOfTenants = [
  '--max-connections=400',
  // A thread whose priority was lowered for its tenant's CPU use must not serve another tenant.
  '--thread-handling=one-thread-per-connection',
  '--thread-cache-size=0',
  '--max-allowed-packet=16M',
  // Each statement takes memory of its session, which is limited. So one session cannot use up the global number.
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
  // Limits the disk space of one temporary table of a statement.
  '--tmp-disk-table-size=512M',
  '--maximum-tmp-disk-table-size=512M',
  '--maximum-max-heap-table-size=32M',
  // That limit is per in-memory table, and a session could make any number of them. So only InnoDB is allowed.
  '--enforce-storage-engine=InnoDB',
  '--maximum-read-buffer-size=2M',
  '--maximum-read-rnd-buffer-size=8M',
  '--maximum-bulk-insert-buffer-size=16M',
  '--maximum-myisam-sort-buffer-size=32M',
];
