import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { format } from 'mysql2';

const require = createRequire(import.meta.url);

/** A command of the driver: a query, or the execution of a prepared statement. */
interface Command {
  sql?: string;
  parameters?: unknown[];
}

/**
 * Records each kind of statement that this process sends to MySQL, once, as first sent. Writes them as JSON to `file`
 * at exit. Patches a class of the driver that both pools use, since the driver has no hook for this.
 */
export function recordStatements(file: string): void {
  const statements = new Map<string, string>();
  const connection = join(dirname(require.resolve('mysql2')), 'lib', 'base', 'connection.js');
  const { prototype } = require(connection) as { prototype: { addCommand(command: Command): unknown } };
  const { addCommand } = prototype;
  prototype.addCommand = function (command) {
    const { sql: all, parameters } = command;
    // Some statements are sent together.
    for (const sql of all?.split(';\n') ?? []) {
      const kind = kindOf(sql);
      // Values of a prepared statement are separate.
      if (!statements.has(kind))
        statements.set(kind, parameters === undefined ? sql : format(sql, parameters as never));
    }
    return addCommand.call(this, command);
  };
  process.on('exit', () => writeFileSync(file, JSON.stringify([...statements.values()])));
}

/** The first argument of the driver's `query`: a statement, alone or with options. */
export type Statement = string | { sql: string };

export function sqlOf(statement: Statement): string {
  return typeof statement === 'string' ? statement : statement.sql;
}

/** A statement without its values. Lists of values lose their length too. */
export function kindOf(sql: string): string {
  return sql
    .replace(/X'[0-9a-f]*'|'(?:[^'\\]|\\.|'')*'|\b\d+(\.\d+)?\b/gi, '?')
    .replace(/\s+/g, ' ')
    .replace(/(WHEN \? THEN \? ?)+/g, 'WHEN ? THEN ? ')
    .replace(/\(\?(, ?\?)*\)(, ?\(\?(, ?\?)*\))*/g, '(?)')
    .replace(/(\((?:[^()]| ?\(\?\))*\))( OR \1)+/g, '$1');
}
