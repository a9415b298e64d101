/** An account as statements name it. It may come from anywhere: who reaches the server is the network's to say. */
export function accountName(user: string): string {
  return `'${plain(user)}'@'%'`;
}

/** A database as statements name it. */
export function databaseName(name: string): string {
  return `\`${plain(name)}\``;
}

/** A database as GRANT names it, where `_` would stand for any letter. */
export function grantedName(name: string): string {
  return `\`${plain(name).replaceAll('_', '\\_')}\``;
}

/** Names are ours alone. Anything else would be a defect of ours, and must not become a statement. */
function plain(name: string): string {
  if (!/^[a-z0-9_]{1,32}$/.test(name)) throw new Error('This is not a name that Atrium gives.');
  return name;
}
