import { Utils } from 'sequelize';

/** The column of a field, named as Sequelize names the columns of models: `item_id` for `itemId`. */
export function columnOf(field: string): string {
  return Utils.underscoredIf(field, true);
}

/** The columns of fields for a SELECT, each with the field's name as its alias. `fields` are separated by spaces. */
export function selected(fields: string): string {
  return fields
    .trim()
    .split(/\s+/)
    .map((field) => (columnOf(field) === field ? field : `${columnOf(field)} AS ${field}`))
    .join(', ');
}

/** Values of an object's fields as a row: by their columns, with objects as JSON. */
export function rowOf(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const isJson = (value: unknown) =>
    typeof value === 'object' && value !== null && !(value instanceof Date) && !Buffer.isBuffer(value);
  const entries = Object.entries(values).map(([field, value]) => [
    columnOf(field),
    isJson(value) ? JSON.stringify(value) : value,
  ]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}
