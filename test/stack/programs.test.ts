import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { getObjectStore } from '../../stack/programs.ts';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/processes.ts';
import { createStackContext } from '../support/stackContext.ts';

/** A folder with stand-ins for programs. */
function programs(scripts: Record<string, string>): string {
  const folder = join(temporaryFolder(), 'bin');
  mkdirSync(folder);
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
}

/** Stands for Go: takes a moment, notes each run, and puts a program where `go install` would. */
const go = (log: string) =>
  `echo run >> ${log}; sleep 0.3; echo '#!/bin/sh' > "$GOBIN/atrium-store"; chmod 755 "$GOBIN/atrium-store"`;

const withPath = (folder: string) => createStackContext({ environment: { PATH: `${folder}:/usr/bin:/bin` } });

test('the program on PATH comes first', async () => {
  const folder = programs({ 'atrium-store': '', go: 'exit 1' });
  expect(basename(await getObjectStore(withPath(folder)))).toContain('atrium-store');
});

test('two starts at once build it once, and the next one finds it', async () => {
  const log = join(temporaryFolder(), 'runs');
  const context = withPath(programs({ go: go(log) }));
  const [first, second] = await Promise.all([getObjectStore(context), getObjectStore(context)]);
  expect(second).toBe(first);
  expect(await getObjectStore(context)).toBe(first);
  expect(readFileSync(log, 'utf8')).toBe('run\n');
  expect(readdirSync(context.cacheDir)).toEqual([expect.stringMatching(/^atrium-store-[0-9a-f]{12}$/)]);
  expect(context.lines).toContain(
    'Building the object store with Go, once for this user (about 2 minutes on 2 cores) …',
  );
});

test('a build that is given up ends at once and leaves nothing', async () => {
  const log = join(temporaryFolder(), 'runs');
  const abort = new AbortController();
  const context = createStackContext({
    environment: { PATH: `${programs({ go: `echo run >> ${log}; sleep 60` })}:/usr/bin:/bin` },
    signal: abort.signal,
  });
  const build = getObjectStore(context);
  await until(() => readdirSync(join(log, '..')).includes('runs'));
  abort.abort(new Error('given up'));
  await expect(build).rejects.toThrow('given up');
  expect(readdirSync(context.cacheDir)).toEqual([]);
});

test('what a killed build has left is removed by the next', async () => {
  const context = withPath(programs({ go: go('/dev/null') }));
  mkdirSync(join(context.cacheDir, '.atrium-store-abc'));
  await getObjectStore(context);
  expect(readdirSync(context.cacheDir)).toEqual([expect.stringMatching(/^atrium-store-[0-9a-f]{12}$/)]);
});

test('a build that fails says why in one line', async () => {
  const context = withPath(programs({ go: 'echo the module proxy does not answer; exit 1' }));
  await expect(getObjectStore(context)).rejects.toThrow(
    'atrium-store could not be built: the module proxy does not answer',
  );
});
