import type { TenantConnection } from './connection.ts';
import { accountName, grantedName } from './names.ts';
import type { WantedDatabase } from './types.ts';

/** What a space may do in its own database, and nowhere else, whatever its size. */
const always = 'SELECT, DELETE, DROP, LOCK TABLES, SHOW VIEW, EXECUTE';

/** What makes a database larger. */
const whileNotFull = `INSERT, UPDATE, CREATE, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, CREATE VIEW,
  CREATE ROUTINE, ALTER ROUTINE`;

/** Without it what is deleted fires no trigger, and fails: so it is taken only from whoever fills a database with them. */
const triggers = 'TRIGGER';

const onlyReading = 'SELECT, SHOW VIEW';

/** Gives an account its rights in a database. Connections that are open keep what they had before. */
export async function giveRights(
  connection: TenantConnection,
  { user, onlyReads }: { user: string; onlyReads: boolean },
  { name, isFull, isFullOfDefinitions = false }: Pick<WantedDatabase, 'name' | 'isFull' | 'isFullOfDefinitions'>,
): Promise<void> {
  const [place, account] = [`${grantedName(name)}.*`, accountName(user)];
  if (onlyReads) return connection.run(`GRANT ${onlyReading} ON ${place} TO ${account}`);
  const given = [always, ...(isFull ? [] : [whileNotFull]), ...(isFullOfDefinitions ? [] : [triggers])];
  const taken = [...(isFull ? [whileNotFull] : []), ...(isFullOfDefinitions ? [triggers] : [])];
  await connection.run(`GRANT ${given.join(', ')} ON ${place} TO ${account}`);
  // MySQL refuses to take what is taken already, unless it is told so; MariaDB does not.
  const revoke = connection.isMariaDb ? 'REVOKE' : 'REVOKE IF EXISTS';
  if (taken.length > 0) await connection.run(`${revoke} ${taken.join(', ')} ON ${place} FROM ${account}`);
}
