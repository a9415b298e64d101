import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Runs plain git, without any settings of the user. */
export function gitIn(cwd: string, ...args: string[]): string {
  return gitWith({ cwd }, ...args);
}

export function gitWith(
  options: { cwd: string; input?: string | Buffer; environment?: object },
  ...args: string[]
): string {
  return execFileSync('git', args, {
    cwd: options.cwd,
    input: options.input ?? '',
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'pipe'],
    maxBuffer: 1_073_741_824,
    env: {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      HOME: '/nonexistent',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_AUTHOR_NAME: 'Ada',
      GIT_AUTHOR_EMAIL: 'ada@example.com',
      GIT_COMMITTER_NAME: 'Ada',
      GIT_COMMITTER_EMAIL: 'ada@example.com',
      ...options.environment,
    },
  }).trim();
}

/**
 * Commits files to a branch of a bare repository; `undefined` removes a file. A new branch begins at HEAD. Uses
 * fast-import, since a clone and a push would take twenty processes.
 */
export function commitFiles(
  bare: string,
  files: Record<string, string | Buffer | undefined>,
  { branch = 'main', message = 'A change' } = {},
): string {
  const format = '--format=%(refname) %(objectname)';
  const refs = new Map(
    gitIn(bare, 'for-each-ref', format, 'refs/heads')
      .split('\n')
      .map((line) => line.split(' ') as [string, string]),
  );
  const head = readFileSync(join(bare, 'HEAD'), 'utf8').trim().replace('ref: ', '');
  const parent = refs.get(`refs/heads/${branch}`) ?? refs.get(head);
  const data = (content: Buffer) => [Buffer.from(`data ${content.length}\n`), content, Buffer.from('\n')];
  const changes = Object.entries(files).flatMap(([name, content]) => {
    const path = JSON.stringify(name);
    if (content === undefined) return [Buffer.from(`D ${path}\n`)];
    return [Buffer.from(`M 100644 inline ${path}\n`), ...data(Buffer.from(content))];
  });
  const input = Buffer.concat([
    Buffer.from(`commit refs/heads/${branch}\nmark :1\ncommitter Ada <ada@example.com> now\n`),
    ...data(Buffer.from(`${message}\n`)),
    Buffer.from(parent === undefined ? '' : `from ${parent}\n`),
    ...changes,
    Buffer.from('\nget-mark :1\n'),
  ]);
  return gitWith({ cwd: bare, input }, 'fast-import', '--quiet', '--date-format=now');
}

/** Writes many commits with fast-import. `weight` is the number of incompressible bytes that each adds. */
export function writeHistory(
  bare: string,
  options: { commits: number; filesEach: number; weight: number; keepsFiles?: boolean },
): void {
  const parts: Buffer[] = [];
  const add = (text: string) => void parts.push(Buffer.from(text));
  for (let commit = 0; commit < options.commits; commit += 1) {
    add(`commit refs/heads/main\ncommitter Ada <ada@example.com> ${1_700_000_000 + commit} +0000\n`);
    const message = `Commit ${commit}`;
    add(`data ${message.length}\n${message}\n`);
    for (let file = 0; file < options.filesEach; file += 1) {
      const name = options.keepsFiles ? `folder${file % 10}/${file}.bin` : `folder${commit % 50}/${commit}-${file}.bin`;
      const content = randomBytes(Math.ceil(options.weight / options.filesEach));
      add(`M 100644 inline ${name}\ndata ${content.length}\n`);
      parts.push(content);
      add('\n');
    }
    add('\n');
  }
  gitWith({ cwd: bare, input: Buffer.concat(parts) }, 'fast-import', '--quiet', '--force');
  gitIn(bare, 'repack', '-a', '-d', '-q');
}

/** `git clone --bare` by hand. Asynchronous, since the server may run in this process. */
export async function plainClone(url: string, target: string, caFile: string): Promise<void> {
  await promisify(execFile)('git', ['clone', '--quiet', '--bare', url, target], {
    env: {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      HOME: '/nonexistent',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_SSL_CAINFO: caFile,
    },
  });
}
