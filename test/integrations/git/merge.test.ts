import { createReadStream, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { draftRef } from '../../../integrations/git/rules/keptRefs.ts';
import type { RepositoryRef } from '../../../integrations/git/types.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { commitFiles, gitIn } from '../../support/gitRepository.ts';

/** Merges in mirrors, without a working tree. */
let world: MirrorsWorld;
beforeAll(async () => {
  world = await buildMirrors();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.server.reset());

const { signal } = new AbortController();
const [theirs, result] = [draftRef('drf_1', 'heads/try'), draftRef('drf_1', 'merge')];
const merge = {
  into: 'main',
  from: theirs,
  to: result,
  author: { name: 'Ada', email: 'ada@example.com' },
  at: new Date(1_700_000_000_000),
  message: 'Merge it',
};
let count = 0;

/** Makes a repository, and a draft with these files. */
async function drafted(files: Record<string, string>) {
  count += 1;
  const name = `merge${count}.git`;
  const bare = world.server.create(name);
  const base = commitFiles(bare, { a: 'a', b: 'b' });
  const ref = world.ref();
  const source = { url: world.server.url(name) };
  await world.mirrors.clone(ref, source, world.hooks());
  const commit = await receive(ref, bare, files, theirs);
  return { ref, bare, base, source, commit };
}

/** Commits files on top of the repository's first commit in a tree, and sends the commit to the mirror. */
async function receive(ref: RepositoryRef, bare: string, files: Record<string, string>, to: string): Promise<string> {
  const tree = temporaryFolder();
  gitIn(tree, 'clone', '--quiet', bare, '.');
  for (const [file, content] of Object.entries(files)) writeFileSync(join(tree, file), content);
  gitIn(tree, 'add', '-A');
  gitIn(tree, 'commit', '--quiet', '-m', 'In the tree');
  const commit = gitIn(tree, 'rev-parse', 'HEAD');
  const path = join(temporaryFolder(), 'out.bundle');
  gitIn(tree, 'bundle', 'create', '--quiet', path, 'HEAD', '^HEAD~');
  const from = (await world.mirrors.state(ref))?.manifest.refs[to] ?? null;
  await world.mirrors.receive(ref, { bundle: createReadStream(path), refs: [{ name: to, from, to: commit }] }, signal);
  return commit;
}

const refsOf = async (ref: RepositoryRef) => (await world.mirrors.state(ref))?.manifest.refs ?? {};

test('an unmoved branch is fast-forwarded, and a branch that has everything stays', async () => {
  const { ref, base, commit } = await drafted({ a: 'draft' });
  expect(await world.mirrors.merge(ref, merge, signal)).toEqual({ commit, fastForward: true });
  expect(await refsOf(ref)).toMatchObject({ [result]: commit, 'refs/heads/main': base });
  const other = { ...merge, from: 'refs/heads/main', to: draftRef('drf_2', 'merge') };
  expect(await world.mirrors.merge(ref, other, signal)).toEqual({ commit: base, fastForward: true });
});

test('two sides are merged in a commit that is reproducible and survives the loss of the machine', async () => {
  const { ref, bare, source, commit } = await drafted({ a: 'draft' });
  const ours = await receive(ref, bare, { b: 'ours' }, 'refs/heads/main');
  const merged = await world.mirrors.merge(ref, merge, signal);
  expect(merged).toEqual({ commit: expect.stringMatching(/^[0-9a-f]{40}$/), fastForward: false });
  expect(await world.mirrors.merge(ref, merge, signal)).toEqual(merged);
  // A mirror with loose objects refuses fetches.
  expect(readdirSync(join(world.folderOf(ref), 'mirror.git', 'objects')).toSorted()).toEqual(['info', 'pack']);
  commitFiles(bare, { c: 'c' });
  await world.mirrors.fetch(ref, source, world.hooks());

  world.loseMachine();
  const { bundle, ...state } = await world.mirrors.bundleFor(ref, [], signal, [result]);
  await using made = bundle;
  const tree = temporaryFolder();
  gitIn(tree, 'init', '--quiet');
  gitIn(tree, 'bundle', 'unbundle', made?.path ?? '');
  expect(state.manifest.refs[result]).toBe(merged.commit);
  expect(gitIn(tree, 'log', '-1', '--format=%P %an %s', merged.commit)).toBe(`${ours} ${commit} Ada Merge it`);
  expect([gitIn(tree, 'show', `${merged.commit}:a`), gitIn(tree, 'show', `${merged.commit}:b`)]).toEqual([
    'draft',
    'ours',
  ]);
});

test('a conflict names the files and changes nothing', async () => {
  const { ref, bare, source } = await drafted({ a: 'draft', b: 'draft' });
  await receive(ref, bare, { a: 'ours' }, 'refs/heads/main');
  const before = await world.mirrors.state(ref);
  await expect(world.mirrors.merge(ref, merge, signal)).rejects.toMatchObject({
    code: 'GIT_CONFLICT',
    message: expect.stringMatching(/changed a\. Nothing was merged/),
  });
  expect(await world.mirrors.state(ref)).toEqual(before);
  await world.mirrors.fetch(ref, source, world.hooks());
});

test('a missing branch fails with GIT_REF_UNKNOWN', async () => {
  const { ref } = await drafted({ a: 'draft' });
  for (const more of [{ into: 'gone' }, { from: 'refs/heads/gone' }]) {
    await expect(world.mirrors.merge(ref, { ...merge, ...more }, signal)).rejects.toMatchObject({
      code: 'GIT_REF_UNKNOWN',
    });
  }
});

test('kept refs go only to receivers that ask for them', async () => {
  const { ref, commit } = await drafted({ a: 'draft' });
  const { bundle, manifest } = await world.mirrors.bundleFor(ref, [], signal);
  await using made = bundle;
  const tree = temporaryFolder();
  gitIn(tree, 'init', '--quiet');
  gitIn(tree, 'bundle', 'unbundle', made?.path ?? '');
  expect(Object.keys(manifest.refs).filter((name) => name.startsWith('refs/atrium/'))).toEqual([]);
  expect(() => gitIn(tree, 'cat-file', '-e', commit)).toThrow();
});
