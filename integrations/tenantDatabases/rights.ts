import type { TenantConnection } from './connection.ts';
import { accountName, grantedName } from './names.ts';

/** What a space may do in its own database, and nowhere else, whatever its size. */
const always = 'SELECT, DELETE, DROP, LOCK TABLES, SHOW VIEW, EXECUTE, TRIGGER';

/** What makes a database larger. */
const whileNotFull = `INSERT, UPDATE, CREATE, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, CREATE VIEW,
  CREATE ROUTINE, ALTER ROUTINE`;

const onlyReading = 'SELECT, SHOW VIEW';

/** Gives an account its rights in a database. Connections that are open keep what they had before. */
export async function giveRights(
  connection: TenantConnection,
  { user, onlyReads }: { user: string; onlyReads: boolean },
  { name, isFull }: { name: string; isFull: boolean },
): Promise<void> {
  const [place, account] = [`${grantedName(name)}.*`, accountName(user)];
  if (onlyReads) return connection.run(`GRANT ${onlyReading} ON ${place} TO ${account}`);
  await connection.run(`GRANT ${always}${isFull ? '' : `, ${whileNotFull}`} ON ${place} TO ${account}`);
  // MySQL refuses to take what is taken already, unless it is told so; MariaDB does not.
  const revoke = connection.isMariaDb ? 'REVOKE' : 'REVOKE IF EXISTS';
  if (isFull) await connection.run(`${revoke} ${whileNotFull} ON ${place} FROM ${account}`);
}
