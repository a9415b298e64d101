import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fetchKind } from '../../../integrations/git/clone/missing.ts';
import type { Git } from '../../../integrations/git/process/git.ts';
import type { Remote } from '../../../integrations/git/remote/remote.ts';
import type { RepositoryRef } from '../../../integrations/git/types.ts';
import { buildBareGit } from '../../builders/bareGit.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { gitIn, gitWith, writeHistory } from '../../support/gitRepository.ts';

/** Clones that cannot continue from their partial data start again, and do not fail for ever. */
let world: MirrorsWorld;
beforeAll(async () => {
  world = await buildMirrors();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.server.reset());

const partialOf = (ref: RepositoryRef) => join(world.folderOf(ref), 'partial.git');

/** Makes a clone of a 3 MB repository that is cut half-way. */
async function cutClone(name: string) {
  const bare = world.server.create(name);
  writeHistory(bare, { commits: 100, filesEach: 4, weight: 32_000, keepsFiles: true });
  world.server.cutAfter = 1_600_000;
  const ref = world.ref();
  const source = { url: world.server.url(name) };
  await expect(world.mirrors.clone(ref, source, world.hooks())).rejects.toMatchObject({ code: 'GIT_REMOTE_FAILED' });
  world.server.cutAfter = undefined;
  return { bare, ref, source };
}

/** Clones. Returns the number of kept objects for each try: 0 for a try that started again. */
async function cloneAgain(ref: RepositoryRef, source: { url: string }): Promise<number[]> {
  const kept: number[] = [];
  const onProgress = ({ keptObjects }: { keptObjects: number }) => {
    if (kept.at(-1) !== keptObjects) kept.push(keptObjects);
  };
  await world.mirrors.clone(ref, source, world.hooks({ onProgress }));
  return kept;
}

function expectComplete(ref: RepositoryRef, bare: string): void {
  const mirror = `--git-dir=${join(world.folderOf(ref), 'mirror.git')}`;
  expect(gitIn(bare, mirror, 'fsck', '--strict', '--no-dangling')).toBe('');
  expect(gitIn(bare, mirror, 'rev-parse', 'refs/heads/main')).toBe(gitIn(bare, 'rev-parse', 'main'));
  expect(gitIn(bare, mirror, 'for-each-ref', 'refs/heads/lost')).toBe('');
  expect(existsSync(partialOf(ref))).toBe(false);
}

test('a clone that needs an object which the server no longer has starts again', async () => {
  const { bare, ref, source } = await cutClone('forgotten.git');
  // The clone has the commit of a branch, but the branch and its file were removed before the file arrived.
  const blob = gitWith({ cwd: bare, input: 'soon gone' }, 'hash-object', '-w', '--stdin');
  const tree = gitWith({ cwd: bare, input: `100644 blob ${blob}\tf\n` }, 'mktree');
  gitIn(bare, 'update-ref', 'refs/heads/lost', gitIn(bare, 'commit-tree', '-m', 'x', tree));
  const partial = partialOf(ref);
  gitIn(bare, `--git-dir=${partial}`, 'fetch', '-q', '--filter=blob:none', `file://${bare}`, 'lost:refs/heads/lost');
  gitIn(bare, 'update-ref', '-d', 'refs/heads/lost');
  gitIn(bare, 'prune', '--expire=now');
  const kept = await cloneAgain(ref, source);
  expect([Math.max(...kept) > 0, kept.at(-1)]).toEqual([true, 0]);
  expectComplete(ref, bare);
});

test('a clone with an object that git refuses starts again', async () => {
  const { bare, ref, source } = await cutClone('refused.git');
  const blob = gitWith({ cwd: bare, input: 'x' }, 'hash-object', '-w', '--stdin');
  const input = Buffer.concat([Buffer.from('100644 .git\0'), Buffer.from(blob, 'hex')]);
  const tree = gitWith({ cwd: bare, input }, 'hash-object', '-t', 'tree', '-w', '--literally', '--stdin');
  gitIn(bare, 'update-ref', 'refs/heads/lost', gitIn(bare, 'commit-tree', '-m', 'x', tree));
  const unchecked = ['-c', 'fetch.fsckObjects=false', '-c', 'fetch.unpackLimit=1'];
  gitIn(bare, ...unchecked, `--git-dir=${partialOf(ref)}`, 'fetch', '-q', bare, 'lost:refs/heads/lost');
  gitIn(bare, 'update-ref', '-d', 'refs/heads/lost');
  gitIn(bare, 'prune', '--expire=now');
  const kept = await cloneAgain(ref, source);
  expect([Math.max(...kept) > 0, kept.at(-1)]).toEqual([true, 0]);
  expectComplete(ref, bare);
});

test('a clone whose server fails for each request for missing objects starts again after three attempts', async () => {
  const { bare, ref, source } = await cutClone('stubborn.git');
  let posts = 0;
  world.server.interfere = (req, res) => {
    if (req.method !== 'POST') return false;
    posts += 1;
    // Two requests for the list of refs, then requests for objects.
    if (posts <= 2) return false;
    res.writeHead(500).end();
    return true;
  };
  for (let attempt = 0; attempt < 3; attempt += 1) {
    posts = 0;
    await expect(cloneAgain(ref, source)).rejects.toMatchObject({ code: 'GIT_REMOTE_FAILED' });
    expect(posts).toBeGreaterThan(2);
    expect(existsSync(partialOf(ref))).toBe(true);
  }
  world.server.interfere = undefined;
  expect(await cloneAgain(ref, source)).toEqual([0]);
  expectComplete(ref, bare);
});

test('the list of missing objects may be larger than the memory limit for output', async () => {
  await using bare = await buildBareGit(new AbortController().signal);
  const { git } = bare;
  const run = git.run.bind(git);
  git.run = (args, call) => run(args, { maxOutputBytes: 1_048_576, ...call });
  // A folder of files that do not exist. Their list has 2.5 MB.
  const files = 60_000;
  const entry = Buffer.from('100644 0000000\0aaaaaaaaaaaaaaaaaaaa', 'latin1');
  const tree = Buffer.alloc(files * entry.length);
  for (let index = 0; index < files; index += 1) {
    const at = index * entry.length;
    entry.copy(tree, at);
    tree.write(String(index).padStart(7, '0'), at + 7, 'latin1');
    // Vary the first bytes of the ids, since git's hash tables use those.
    tree.writeUInt32LE(index, at + entry.length - 20);
  }
  const id = gitWith({ cwd: git.dir, input: tree }, 'hash-object', '-t', 'tree', '-w', '--literally', '--stdin');
  let asked = 0;
  // A remote that sends nothing. It gets one request for all objects.
  const remote = {
    async do(_git: Git, _args: string[], { input = '' }: { input?: string }) {
      asked += input.length / 41;
    },
  } as unknown as Remote;
  await expect(fetchKind(git, remote, { filter: null, roots: [id] })).rejects.toMatchObject({
    code: 'GIT_REMOTE_FAILED',
  });
  expect(asked).toBe(files);
});
