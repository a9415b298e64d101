import { join } from 'node:path';
import { findProgram, type StackContext } from './context.ts';
import { StackError } from './errors.ts';
import { canInstall, installPackages } from './install.ts';
import { type Accounts, databaseName, readOrMakeAccounts, setupStatements } from './mariadbAccounts.ts';
import { type MariaDbPrograms, prepareServer, socketName, startServer } from './mariadbServer.ts';
import { choosePort } from './ports.ts';
import type { Service } from './services.ts';

const usualPort = 3306;
/** The longest socket path in bytes that every system accepts. */
const longestSocketPath = 100;

export interface MariaDb {
  service: Service;
  port: number;
  address: string;
  /** For the account of the running Atrium. */
  url: string;
  /** For the account that creates and changes tables. */
  ownerUrl: string;
}

/** The needed packages: the server, the script that fills a data directory, and a tool that the script calls. */
const packages = ['mariadb-server-core', 'mariadb-client-core'];
const programNames = ['mariadbd', 'mariadb-install-db', 'my_print_defaults'] as const;

function findMariaDb(context: StackContext): MariaDbPrograms | undefined {
  const [server, installer, helper] = programNames.map((name) => findProgram(name, context.environment));
  return server !== undefined && installer !== undefined && helper !== undefined ? { server, installer } : undefined;
}

/** Finds MariaDB. As root on Debian and Ubuntu, installs its programs, without the system service. */
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
 * Starts a private MariaDB with its own data directory, port and socket; not the system's service. With `former` it
 * reuses that port.
 */
export async function startMariaDb(
  context: StackContext,
  programs: MariaDbPrograms,
  former?: Pick<MariaDb, 'port'>,
): Promise<MariaDb> {
  const accounts = readOrMakeAccounts(context);
  const setup = setupStatements(accounts, [databaseName, ...(context.furtherDatabases ?? [])]);
  const title = 'MariaDB';
  const place = await prepareServer(context, programs, { name: 'database', title, setup });
  const port = former?.port ?? (await choosePort(context.ports === 'usual' ? usualPort : undefined));
  const urlOf = ({ user, password }: Accounts['app']) =>
    `mysql://${user}:${password}@127.0.0.1:${port}/${databaseName}`;
  const url = urlOf(accounts.app);
  const socketPath = join(place.folder, 'data', socketName);
  const hasSocket = context.databaseSocket === true && Buffer.byteLength(socketPath) <= longestSocketPath;
  const service = await startServer(context, programs, place, { title, port, args: sizes, probe: url });
  return {
    service,
    port,
    address: `127.0.0.1:${port}`,
    url: hasSocket ? `${url}?${new URLSearchParams({ socketPath })}` : url,
    ownerUrl: urlOf(accounts.owner),
  };
}

const sizes = [
  '--max-allowed-packet=64M',
  '--max-connections=300',
  '--innodb-buffer-pool-size=256M',
  '--innodb-log-file-size=256M',
];
