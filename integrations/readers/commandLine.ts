import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const program = fileURLToPath(new URL('./program.ts', import.meta.url));

/**
 * Hard limits that the kernel enforces. The data limit is what a Node process reserves when it starts (550 MiB, nearly
 * all of it never touched) plus what a document may take. The address space limit is for kernels that count only the
 * heap as data. The CPU time, in seconds, ends a process whose parent has been killed. If a system lacks one of the
 * limits, the others apply.
 */
const limits = [
  ['-c', '0'],
  ['-d', String(1_280 * 1_024)],
  ['-v', String(4_096 * 1_024)],
  ['-t', '240'],
];

const v8Options = [
  '--max-old-space-size=256',
  '--max-semi-space-size=16',
  '--disallow-code-generation-from-strings',
  '--no-warnings',
];

/**
 * The command that starts a reading process: with its limits, and without permission to write files, to start programs,
 * or to read more than its own code.
 */
export function readerCommand(): [string, ...string[]] {
  const script = `${limits.map(([name, value]) => `ulimit ${name} ${value} 2>/dev/null`).join('; ')}; exec "$0" "$@"`;
  const code = [
    ...new Set(['integrations/readers/', 'base/text.ts', 'node_modules/', 'package.json'].flatMap(pathsOf)),
  ];
  const permissions = ['--permission', ...code.map((path) => `--allow-fs-read=${path}`)];
  return ['/bin/sh', '-c', script, process.execPath, ...v8Options, ...permissions, program];
}

/** A path as written and resolved: a folder of modules may be a link. */
function pathsOf(name: string): string[] {
  const path = `${root}${name}`;
  const real = realpathSync(path);
  return [path, name.endsWith('/') ? `${real}/` : real];
}
