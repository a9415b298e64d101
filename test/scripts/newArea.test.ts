import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { plainEnvironment } from '../support/atrium.ts';

// The copy starts a stack of its own.
jest.setTimeout(600_000);

const lists = [
  'activities/areas.ts',
  'api/areas.ts',
  'models/areas.ts',
  'temporal/launchers/areas.ts',
  'workflows/index.ts',
];
/** A name that no real area takes, so that the test also passes in a tree with an area that somebody has generated. */
const area = 'umbrellas';

test('`npm run new-area` writes an area that works, with one line in each list of areas', () => {
  const copy = mkdtempSync(join(tmpdir(), 'atrium-new-area-'));
  try {
    const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      encoding: 'utf8',
    });
    for (const file of files.split('\0').filter(Boolean)) cpSync(file, join(copy, file));
    symlinkSync(join(process.cwd(), 'node_modules'), join(copy, 'node_modules'));
    const run = (command: string, args: string[]) =>
      spawnSync(command, args, { cwd: copy, encoding: 'utf8', env: plainEnvironment({}) });
    expect(run(process.execPath, ['scripts/newArea.ts', area])).toMatchObject({ status: 0, stderr: '' });
    for (const file of lists) {
      const [before, after] = [file, join(copy, file)].map((path) => readFileSync(path, 'utf8').split('\n'));
      expect(after?.filter((line) => !before?.includes(line))).toHaveLength(1);
      expect(before?.filter((line) => !after?.includes(line))).toEqual([]);
    }
    expect(run(process.execPath, ['scripts/checkImports.ts'])).toMatchObject({ status: 0 });
    expect(run(process.execPath, ['test/replay/record.ts']).stdout).toBe('Saved umbrella/done.\n');
    const patterns = [`test/api/${area}`, 'test/models/purge.test.ts', 'test/replay'];
    const tests = run('npm', ['test', '--', '--ci', '--forceExit', ...patterns]);
    expect(tests.stderr + tests.stdout).toContain('Test Suites: 3 passed, 3 total');
    expect(run(process.execPath, ['scripts/newArea.ts', area]).stderr).toContain(`There is an area ${area}`);
  } finally {
    rmSync(copy, { recursive: true });
  }
});
