import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

/** What would be shared by all workflows of a worker: modules are evaluated once, and global variables are not theirs. */
const shared = [/^(export )?(let|var) /m, /^(export )?const [^=]+= new /m, /\bglobalThis\b/];

const holds = (code: string) => shared.some((pattern) => pattern.test(code));

test('no module of the workflows keeps state, nor sets a global variable', () => {
  const files = globSync('workflows/**/*.ts', { cwd: root });
  expect(files.length).toBeGreaterThan(20);
  expect(files.filter((file) => holds(readFileSync(join(root, file), 'utf8')))).toEqual([]);
});

test.each(['let count = 0;', 'export const seen = new Map<string, number>();', '  globalThis.count = 1;'])(
  'is found: %s',
  (code) => expect(holds(`import x from 'y';\n${code}\n`)).toBe(true),
);
