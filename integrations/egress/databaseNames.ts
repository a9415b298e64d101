/** The port at which a computer reaches the databases that apps of its space are connected to, by their names. */
export const databasePort = 23_306;

// No public name ends with this.
const suffix = '.databases.internal';

/** The name by which a computer reaches a database's server. */
export function databaseHost(serverName: string): string {
  return `${serverName}${suffix}`;
}

/** The server name in such a host; undefined for any other host. */
export function databaseOfHost(host: string): string | undefined {
  const name = host.toLowerCase().replace(/\.$/, '');
  return name.endsWith(suffix) ? name.slice(0, -suffix.length) : undefined;
}
