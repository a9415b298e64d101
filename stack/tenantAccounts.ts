import { join } from 'node:path';
import type { StackContext } from './context.ts';
import { readOrMakePassword } from './mariadbAccounts.ts';

/** The accounts of the server for the databases of spaces. */
export interface TenantAccounts {
  /** Atrium's: it makes databases and accounts, and ends their connections. */
  admin: { user: string; password: string };
  /** The server's own administrator, whom only its socket lets in. */
  root: { user: string; password: string };
}

export function readOrMakeTenantAccounts(context: Pick<StackContext, 'dataDir'>): TenantAccounts {
  const account = (user: string, file: string) => ({ user, password: readOrMakePassword(join(context.dataDir, file)) });
  return {
    admin: account('atrium_tenants', 'tenants-admin-password'),
    root: account('root', 'tenants-root-password'),
  };
}

/** What a space may do in its own database; Atrium's account can only give what it has. */
const ofTenants = [
  ...['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'CREATE', 'DROP', 'REFERENCES', 'INDEX', 'ALTER'],
  ...['CREATE TEMPORARY TABLES', 'LOCK TABLES', 'CREATE VIEW', 'SHOW VIEW', 'CREATE ROUTINE', 'ALTER ROUTINE'],
  ...['EXECUTE', 'TRIGGER'],
];

/** Neither files nor settings of the server: only accounts, and the connections of others. */
const ofAdmin = {
  mariadb: ['CREATE USER', 'PROCESS', 'CONNECTION ADMIN'],
  mysql: ['CREATE USER', 'PROCESS', 'CONNECTION_ADMIN', 'XA_RECOVER_ADMIN', 'SERVICE_CONNECTION_ADMIN'],
} as const;

/** Runs at each start before the first connection is let in. */
export function tenantSetupStatements({ admin, root }: TenantAccounts, kind: keyof typeof ofAdmin): string {
  const at = `'${admin.user}'@'127.0.0.1'`;
  return [
    `CREATE USER IF NOT EXISTS ${at} IDENTIFIED BY '${admin.password}';`,
    `ALTER USER ${at} IDENTIFIED BY '${admin.password}';`,
    `REVOKE ALL PRIVILEGES, GRANT OPTION FROM ${at};`,
    `GRANT ${[...ofTenants, ...ofAdmin[kind]].join(', ')} ON *.* TO ${at} WITH GRANT OPTION;`,
    `ALTER USER 'root'@'localhost' IDENTIFIED BY '${root.password}';`,
    // What the installer may have made beside them.
    ...(kind === 'mariadb'
      ? [
          "DELETE FROM mysql.global_priv WHERE User IN ('', 'root') AND NOT (User = 'root' AND Host = 'localhost');",
          'FLUSH PRIVILEGES;',
        ]
      : []),
    '',
  ].join('\n');
}
