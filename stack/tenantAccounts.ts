import type { StackContext } from './context.ts';
import {
  type Account,
  accountAt,
  accountStatements,
  readOrMakeAccount,
  removalOfOthers,
  rootStatement,
} from './mariadbAccounts.ts';

/** The accounts of the server for the databases of spaces. */
export interface TenantAccounts {
  /** Atrium's account. It makes databases and accounts, and ends their connections. */
  admin: Account;
  /** The server's own administrator. It can log in only over the socket. */
  root: Account;
}

export function readOrMakeTenantAccounts({ dataDir }: Pick<StackContext, 'dataDir'>): TenantAccounts {
  return {
    admin: readOrMakeAccount(dataDir, 'atrium_tenants', 'tenants-admin-password'),
    root: readOrMakeAccount(dataDir, 'root', 'tenants-root-password'),
  };
}

/** Rights of a space in its own database. Atrium's account needs them too, since it can grant only its own rights. */
const ofTenants = [
  ...['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'CREATE', 'DROP', 'REFERENCES', 'INDEX', 'ALTER'],
  ...['CREATE TEMPORARY TABLES', 'LOCK TABLES', 'CREATE VIEW', 'SHOW VIEW', 'CREATE ROUTINE', 'ALTER ROUTINE'],
  ...['EXECUTE', 'TRIGGER'],
];

/** Rights over accounts and others' connections. Includes no right to files or settings of the server. */
const ofAdmin = {
  mariadb: ['CREATE USER', 'PROCESS', 'CONNECTION ADMIN'],
  mysql: ['CREATE USER', 'PROCESS', 'CONNECTION_ADMIN', 'XA_RECOVER_ADMIN', 'SERVICE_CONNECTION_ADMIN'],
} as const;

/** Runs at each start, before the first connection is accepted. */
export function tenantSetupStatements({ admin, root }: TenantAccounts, kind: keyof typeof ofAdmin): string {
  return [
    ...accountStatements(admin),
    `GRANT ${[...ofTenants, ...ofAdmin[kind]].join(', ')} ON *.* TO ${accountAt(admin)} WITH GRANT OPTION;`,
    rootStatement(root),
    ...(kind === 'mariadb' ? removalOfOthers : []),
    '',
  ].join('\n');
}
