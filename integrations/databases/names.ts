/** An account, quoted for a statement. Any host is allowed: the network decides who reaches the server. */
export function accountName(user: string): string {
  return `'${plain(user)}'@'%'`;
}

/** A database, quoted for a statement. */
export function databaseName(name: string): string {
  return `\`${plain(name)}\``;
}

/** A database, quoted for GRANT, where a bare `_` is a wildcard. */
export function grantedName(name: string): string {
  return `\`${plain(name).replaceAll('_', '\\_')}\``;
}

/** Atrium makes all names. Another one would be a bug, and must not become part of a statement. */
function plain(name: string): string {
  if (!/^[a-z0-9_]{1,32}$/.test(name)) throw new Error('This is not a name that Atrium gives.');
  return name;
}
