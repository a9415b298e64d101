import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { format } from 'mysql2';

const require = createRequire(import.meta.url);

/** What the driver sends: a query, or the execution of a prepared statement. */
interface Command {
  sql?: string;
  parameters?: unknown[];
}

/**
 * Writes down each kind of statement that this process sends to MySQL, once, as it was sent the first time: as JSON in
 * `file`, when the process ends. Both pools send by the driver's one class, which has no hook for this.
 */
export function recordStatements(file: string): void {
  const statements = new Map<string, string>();
  const connection = join(dirname(require.resolve('mysql2')), 'lib', 'base', 'connection.js');
  const { prototype } = require(connection) as { prototype: { addCommand(command: Command): unknown } };
  const { addCommand } = prototype;
  prototype.addCommand = function (command) {
    const { sql: all, parameters } = command;
    // Some go to the server together.
    for (const sql of all?.split(';\n') ?? []) {
      const kind = kindOf(sql);
      // Statements that were prepared have their values beside them.
      if (!statements.has(kind))
        statements.set(kind, parameters === undefined ? sql : format(sql, parameters as never));
    }
    return addCommand.call(this, command);
  };
  process.on('exit', () => writeFileSync(file, JSON.stringify([...statements.values()])));
}

/** A statement without its values, and lists of them without their length. */
export function kindOf(sql: string): string {
  return sql
    .replace(/X'[0-9a-f]*'|'(?:[^'\\]|\\.|'')*'|\b\d+(\.\d+)?\b/gi, '?')
    .replace(/\s+/g, ' ')
    .replace(/(WHEN \? THEN \? ?)+/g, 'WHEN ? THEN ? ')
    .replace(/\(\?(, ?\?)*\)(, ?\(\?(, ?\?)*\))*/g, '(?)')
    .replace(/(\((?:[^()]| ?\(\?\))*\))( OR \1)+/g, '$1');
}
