import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

/**
 * Code that makes state shared by all workflows of a worker. Modules are evaluated once, and all workflows see the same
 * globals.
 */
const shared = [/^(export )?(let|var) /m, /^(export )?const [^=]+= new /m, /\bglobalThis\b/];

const holds = (code: string) => shared.some((pattern) => pattern.test(code));

test('No workflow module keeps state or sets a global variable', () => {
  const files = globSync('workflows/**/*.ts', { cwd: root });
  expect(files.length).toBeGreaterThan(20);
  expect(files.filter((file) => holds(readFileSync(join(root, file), 'utf8')))).toEqual([]);
});

test.each(['let count = 0;', 'export const seen = new Map<string, number>();', '  globalThis.count = 1;'])(
  'The check finds shared state: %s',
  (code) => expect(holds(`import x from 'y';\n${code}\n`)).toBe(true),
);
