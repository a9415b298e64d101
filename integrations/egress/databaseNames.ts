/** On which a computer finds the databases that apps of its space are connected to, by their names. */
export const databasePort = 23_306;

// No name of the internet ends so.
const suffix = '.databases.internal';

/** What a computer calls the server of a database. */
export function databaseHost(serverName: string): string {
  return `${serverName}${suffix}`;
}

/** The database that a computer means by a host; undefined for any other host. */
export function databaseOfHost(host: string): string | undefined {
  const name = host.toLowerCase().replace(/\.$/, '');
  return name.endsWith(suffix) ? name.slice(0, -suffix.length) : undefined;
}
