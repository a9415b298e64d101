import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { getObjectStore } from '../../stack/programs.ts';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/processes.ts';
import { createStackContext } from '../support/stackContext.ts';

/** Creates a folder with shell scripts in place of programs. */
function programs(scripts: Record<string, string>): string {
  const folder = join(temporaryFolder(), 'bin');
  mkdirSync(folder);
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
}

/** A script in place of Go: it takes a moment, logs each run, and writes a program where `go build -o` would. */
const go = (log: string) => `echo run >> ${log}; sleep 0.3; echo '#!/bin/sh' > "$4"; chmod 755 "$4"`;

const withPath = (folder: string) => createStackContext({ environment: { PATH: `${folder}:/usr/bin:/bin` } });

test('a program on PATH is used without a build', async () => {
  const folder = programs({ 'atrium-store': '', go: 'exit 1' });
  expect(basename(await getObjectStore(withPath(folder)))).toContain('atrium-store');
});

test('two starts at the same time build the object store once, and the next start finds it', async () => {
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

test('an aborted build ends at once and leaves no files', async () => {
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

test('the next build removes the files of a killed build', async () => {
  const context = withPath(programs({ go: go('/dev/null') }));
  mkdirSync(join(context.cacheDir, '.atrium-store-abc'));
  await getObjectStore(context);
  expect(readdirSync(context.cacheDir)).toEqual([expect.stringMatching(/^atrium-store-[0-9a-f]{12}$/)]);
});

test('the error of a failed build has its last output', async () => {
  const context = withPath(programs({ go: 'echo the module proxy does not answer; exit 1' }));
  await expect(getObjectStore(context)).rejects.toThrow(
    'atrium-store could not be built: the module proxy does not answer',
  );
});
