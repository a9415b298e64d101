import { createHash } from 'node:crypto';
import type { TenantConnection } from './connection.ts';
import { accountName } from './names.ts';
import type { WantedAccount } from './types.ts';

/** Makes an account that gets in nowhere yet. MariaDB is not told the password, and so can log none. */
export function createAccount(connection: TenantConnection, { user, password }: WantedAccount): Promise<void> {
  const sql = `CREATE USER IF NOT EXISTS ${accountName(user)} IDENTIFIED`;
  if (connection.isMariaDb) return connection.run(`${sql} VIA ${nativeWay(password)} ACCOUNT LOCK`);
  return connection.run(`${sql} BY ? ACCOUNT LOCK`, [password]);
}

/** Gives an account its password, and the one before it beside that. */
export async function setPasswords(
  connection: TenantConnection,
  { user, password, previous }: WantedAccount,
): Promise<void> {
  const account = accountName(user);
  if (connection.isMariaDb) {
    const ways = [password, previous].flatMap((one) => (one === undefined ? [] : [nativeWay(one)]));
    return connection.run(`ALTER USER ${account} IDENTIFIED VIA ${ways.join(' OR ')}`);
  }
  // The server keeps one password beside the current one: that which was current before.
  await connection.run(`ALTER USER ${account} IDENTIFIED BY ?`, [previous ?? password]);
  await connection.run(`ALTER USER ${account} DISCARD OLD PASSWORD`);
  if (previous === undefined) return;
  await connection.run(`ALTER USER ${account} IDENTIFIED BY ? RETAIN CURRENT PASSWORD`, [password]);
}

/** By what the server keeps of a password, which is not the password. */
function nativeWay(password: string): string {
  const sha1 = (data: string | Buffer) => createHash('sha1').update(data).digest();
  return `mysql_native_password USING '*${sha1(sha1(password)).toString('hex').toUpperCase()}'`;
}
