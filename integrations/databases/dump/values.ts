/** A column of a table, and how its values are written into a statement. */
export interface Column {
  name: string;
  kind: 'number' | 'plain' | 'bytes' | 'text';
  /** The expression that is selected. */
  selected: string;
}

const numbers = new Set('tinyint smallint mediumint int bigint decimal float double year'.split(' '));
const plain = new Set('date datetime timestamp time'.split(' '));
const bytes = new Set(
  (
    'bit binary varbinary tinyblob blob mediumblob longblob vector geometry point linestring polygon multipoint ' +
    'multilinestring multipolygon geometrycollection geomcollection'
  ).split(' '),
);

export function columnOf(name: string, type: string): Column {
  const quoted = quote(name);
  // A FLOAT is shown with six digits. As a DOUBLE it has all of them.
  if (type === 'float') return { name, kind: 'number', selected: `${quoted} + 0E0` };
  const kind = numbers.has(type) ? 'number' : plain.has(type) ? 'plain' : bytes.has(type) ? 'bytes' : 'text';
  return { name, kind, selected: quoted };
}

/** A value within a statement. Nothing in it can end the literal that it is in. */
export function literal({ kind }: Column, value: Buffer | null): string {
  if (value === null) return 'NULL';
  if (kind === 'number') return value.toString('latin1');
  if (kind === 'plain') return `'${value.toString('latin1')}'`;
  const hex = `X'${value.toString('hex')}'`;
  return kind === 'bytes' ? hex : `_utf8mb4 ${hex}`;
}

/** The value for a prepared statement, beside its text. */
export function parameter({ kind }: Column, value: Buffer | null): string | { bytes: string } | null {
  if (value === null) return null;
  return kind === 'bytes' ? { bytes: value.toString('base64') } : value.toString('utf8');
}

export function quote(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}
