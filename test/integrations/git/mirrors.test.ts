import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GitProgress, RepositoryRef } from '../../../integrations/git/types.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { commitFiles, gitIn, writeHistory } from '../../support/gitRepository.ts';

/** Mirrors of a real git server, over real https and the real egress proxy, saved in the real object store. */
let world: MirrorsWorld;
beforeAll(async () => {
  world = await buildMirrors();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.server.reset());

const mirrorOf = (ref: RepositoryRef) => join(world.folderOf(ref), 'mirror.git');
const gitDir = (ref: RepositoryRef, ...args: string[]) =>
  gitIn(world.folderOf(ref), `--git-dir=${mirrorOf(ref)}`, ...args);

describe('a clone', () => {
  test('has every branch, tag and commit, is saved, and reports its progress', async () => {
    const bare = world.server.create('first.git');
    commitFiles(bare, { 'README.md': '# First\n', 'src/a.ts': 'export {};\n' });
    const tip = commitFiles(bare, { 'src/b.ts': 'export {};\n' });
    const side = commitFiles(bare, { 'c.txt': 'c' }, { branch: 'feature/c' });
    gitIn(bare, 'tag', 'v1', tip);
    const ref = world.ref();
    const told: GitProgress[] = [];
    const hooks = world.hooks({ onProgress: (progress) => void told.push(progress) });
    const cloned = await world.mirrors.clone(ref, { url: world.server.url('first.git') }, hooks);

    expect(cloned).toMatchObject({
      version: 1,
      defaultBranch: 'main',
      tree: { files: 3, lfsPointers: 0, submodules: [] },
      manifest: {
        head: 'refs/heads/main',
        shallow: [],
        filter: null,
        refs: {
          'refs/heads/main': tip,
          'refs/remotes/origin/main': tip,
          'refs/remotes/origin/feature/c': side,
          'refs/tags/v1': tip,
        },
      },
    });
    expect(gitDir(ref, 'rev-list', '--count', '--all')).toBe('3');
    expect(told.map(({ phase }) => phase)).toEqual(expect.arrayContaining(['connecting', 'receiving', 'saving']));
    expect(told.find(({ phase, percent }) => phase === 'receiving' && percent === 100)).toMatchObject({ objects: 11 });
    expect(told.at(-1)?.bytes).toBeGreaterThan(1_000);
    expect(world.decisions).toContainEqual({
      host: world.server.host,
      port: world.server.port,
      purpose: 'git',
      address: '127.0.0.1',
      refusal: null,
    });
    // No URL or proxy stays in the configuration, and no copy of the saved bundle.
    expect(readdirSync(world.folderOf(ref)).toSorted()).toEqual(['home', 'mirror.git', 'state.json']);
    expect(gitIn(mirrorOf(ref), '--git-dir=.', 'config', '--list', '--local')).not.toMatch(/url|proxy/);
  });

  test('that is repeated after its save returns the same without a request to the remote', async () => {
    const bare = world.server.create('again.git');
    commitFiles(bare, { a: 'a' });
    const ref = world.ref();
    const first = await world.mirrors.clone(ref, { url: world.server.url('again.git') }, world.hooks());
    world.server.reset();
    const second = await world.mirrors.clone(ref, { url: world.server.url('again.git') }, world.hooks());
    expect(second).toMatchObject(first);
    expect(world.server.requests).toEqual([]);
  });

  test('of an empty repository is empty', async () => {
    world.server.create('empty.git');
    const ref = world.ref();
    const cloned = await world.mirrors.clone(ref, { url: world.server.url('empty.git') }, world.hooks());
    expect(cloned).toMatchObject({ defaultBranch: null, manifest: { head: 'refs/heads/main', refs: {} } });
    world.loseMachine();
    expect(await world.mirrors.bundleFor(ref, [], world.hooks().signal)).toMatchObject({ bundle: null, version: 1 });
  });

  test('of one branch checks that branch out, and a missing branch is reported', async () => {
    const bare = world.server.create('branches.git');
    commitFiles(bare, { a: 'a' });
    commitFiles(bare, { b: 'b' }, { branch: 'other' });
    const url = world.server.url('branches.git');
    const cloned = await world.mirrors.clone(world.ref(), { url, branch: 'other' }, world.hooks());
    expect(cloned).toMatchObject({
      defaultBranch: 'other',
      manifest: { head: 'refs/heads/other' },
      tree: { files: 2 },
    });
    const none = world.mirrors.clone(world.ref(), { url, branch: 'none' }, world.hooks());
    await expect(none).rejects.toMatchObject({ code: 'GIT_REF_UNKNOWN' });
  });

  test('reports LFS pointers, which stay, and submodules, which are inert', async () => {
    const bare = world.server.create('lfs.git');
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'ab'.repeat(32)}\nsize 12345\n`;
    commitFiles(bare, { '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n', 'big.bin': pointer });
    const tree = temporaryFolder();
    gitIn(tree, 'clone', '--quiet', bare, '.');
    const id = gitIn(tree, 'rev-parse', 'HEAD');
    gitIn(tree, 'update-index', '--add', '--cacheinfo', `160000,${id},vendor/library`);
    gitIn(tree, 'commit', '-q', '-m', 'A submodule');
    gitIn(tree, 'push', '-q');
    const cloned = await world.mirrors.clone(world.ref(), { url: world.server.url('lfs.git') }, world.hooks());
    expect(cloned.tree).toMatchObject({ files: 2, lfsPointers: 1, submodules: ['vendor/library'] });
    expect(world.server.requests.every(({ url }) => url.startsWith('/lfs.git/'))).toBe(true);
  });

  test('with a depth has only the last commits, and grows with later fetches', async () => {
    const bare = world.server.create('shallow.git');
    for (let count = 0; count < 5; count += 1) commitFiles(bare, { [`${count}`]: 'x' });
    commitFiles(bare, { other: 'x' }, { branch: 'other' });
    const ref = world.ref();
    const source = { url: world.server.url('shallow.git') };
    const cloned = await world.mirrors.clone(ref, { ...source, depth: 2 }, world.hooks());
    expect(cloned.manifest.shallow).toHaveLength(1);
    expect(Object.keys(cloned.manifest.refs).toSorted()).toEqual(['refs/heads/main', 'refs/remotes/origin/main']);
    expect(gitDir(ref, 'rev-list', '--count', '--all')).toBe('2');
    world.loseMachine();
    const tip = commitFiles(bare, { more: 'x' });
    const fetched = await world.mirrors.fetch(ref, source, world.hooks());
    expect(fetched.manifest.refs['refs/remotes/origin/main']).toBe(tip);
    world.loseMachine();
    await world.mirrors.measure(ref, tip, world.hooks().signal);
    expect(gitDir(ref, 'rev-list', '--count', '--all')).toBe('3');
    expect(gitDir(ref, 'fsck', '--strict', '--no-dangling')).toBe('');
  });

  test('with a filter has the current versions of files, and fetches old ones on demand', async () => {
    const bare = world.server.create('partial.git');
    commitFiles(bare, { a: 'one', b: 'same' });
    const old = commitFiles(bare, { a: 'two' });
    commitFiles(bare, { a: 'three' });
    const ref = world.ref();
    const source = { url: world.server.url('partial.git') };
    const cloned = await world.mirrors.clone(ref, { ...source, filter: 'blob:none' }, world.hooks());
    expect(cloned).toMatchObject({ manifest: { filter: 'blob:none' }, tree: { files: 2, bytes: 9 } });
    const missing = () =>
      gitDir(ref, 'rev-list', '--objects', '--all', '--missing=print')
        .split('\n')
        .filter((line) => line.startsWith('?'));
    expect(missing()).toHaveLength(2);
    world.loseMachine();
    await using files = await world.mirrors.fetchFiles(ref, source, old, 'all', world.hooks());
    expect(files?.bytes).toBeGreaterThan(100);
    expect(missing()).toHaveLength(1);
    // Only the requested blobs are sent, if they exist.
    const [id = ''] = gitDir(ref, 'rev-parse', `${old}:a`).split('\n');
    const foreign = '1'.repeat(40);
    await using few = await world.mirrors.fetchFiles(ref, source, old, [id, foreign], world.hooks());
    expect(few === null ? 0 : readFileSync(few.path).readUInt32BE(readFileSync(few.path).indexOf('PACK') + 8)).toBe(1);
    expect(await world.mirrors.fetchFiles(ref, source, old, [], world.hooks())).toBeNull();
  });

  test('with a filter has files that one machine has fetched on all machines', async () => {
    const bare = world.server.create('machines.git');
    commitFiles(bare, { a: 'one', b: 'same' });
    const other = commitFiles(bare, { a: 'other', c: 'c' }, { branch: 'other' });
    const ref = world.ref();
    const source = { url: world.server.url('machines.git') };
    await world.mirrors.clone(ref, { ...source, filter: 'blob:none' }, world.hooks());
    const there = world.another({ ATRIUM_GIT_DIR: temporaryFolder() });
    expect(await there.fetchFiles(ref, source, other, [], world.hooks())).toBeNull();
    world.server.reset();
    const filesOf = (commit: string) => gitDir(ref, 'rev-list', '--objects', '--missing=print', `${commit}^{tree}`);
    for (const machine of ['one that was there before', 'a new one']) {
      if (machine === 'a new one') world.loseMachine();
      await using made = (await world.mirrors.bundleFor(ref, [], world.hooks().signal)).bundle;
      const tree = temporaryFolder();
      gitIn(tree, 'init', '--quiet');
      gitIn(tree, 'bundle', 'unbundle', made?.path ?? '');
      expect([machine, filesOf(other)]).toEqual([machine, expect.not.stringContaining('?')]);
      expect(gitIn(tree, 'show', `${other}:a`)).toBe('other');
    }
    expect(world.server.requests).toEqual([]);
    // Files that were saved are not saved again.
    const before = (await world.records.current(ref))?.version;
    expect(await world.mirrors.fetchFiles(ref, source, other, [], world.hooks())).toBeNull();
    expect((await world.records.current(ref))?.version).toBe(before);
  });
});

describe('a saved mirror', () => {
  test('is restored completely on another machine', async () => {
    const bare = world.server.create('lost.git');
    writeHistory(bare, { commits: 60, filesEach: 3, weight: 3_000 });
    const ref = world.ref();
    const source = { url: world.server.url('lost.git') };
    const { signal } = world.hooks();
    await world.mirrors.clone(ref, source, world.hooks());
    // Each change adds a bundle. After many of them, one bundle replaces them.
    for (let count = 0; count < 8; count += 1) {
      commitFiles(bare, { [`more/${count}`]: `${count}` }, { branch: count % 2 ? 'main' : `side/${count}` });
      await world.mirrors.fetch(ref, source, world.hooks());
    }
    const saved = await world.records.current(ref);
    // The clone, eight changes and two full bundles.
    expect(saved?.version).toBe(11);
    expect(saved?.bundles.length).toBeLessThan(6);
    const before = gitDir(ref, 'rev-list', '--all', '--objects').split('\n').toSorted();

    world.loseMachine();
    world.server.reset();
    await using made = (await world.mirrors.bundleFor(ref, [], signal)).bundle;
    expect(world.server.requests).toEqual([]);
    expect(gitDir(ref, 'rev-list', '--all', '--objects').split('\n').toSorted()).toEqual(before);
    expect(gitDir(ref, 'fsck', '--strict', '--no-dangling')).toBe('');
    expect(gitDir(ref, 'for-each-ref', '--format=%(refname)').split('\n')).toContain('refs/remotes/origin/side/6');

    // The bundle has git's own format, so plain git can clone it.
    const tree = temporaryFolder();
    gitIn(tree, 'clone', '--quiet', made?.path ?? '', '.');
    expect(gitIn(tree, 'rev-list', '--count', 'HEAD')).toBe(gitDir(ref, 'rev-list', '--count', 'main'));
  });

  test('gets no new bundle if only refs move', async () => {
    const bare = world.server.create('refs.git');
    const [first] = [commitFiles(bare, { a: 'a' }), commitFiles(bare, { b: 'b' })];
    const ref = world.ref();
    const { signal } = world.hooks();
    await world.mirrors.clone(ref, { url: world.server.url('refs.git') }, world.hooks());
    const moved = await world.mirrors.receive(
      ref,
      { refs: [{ name: 'refs/heads/side', from: null, to: first }], head: 'refs/heads/side' },
      signal,
    );
    expect(moved).toMatchObject({ version: 2, manifest: { head: 'refs/heads/side' } });
    const saved = await world.records.current(ref);
    expect(saved?.bundles).toHaveLength(1);
    world.loseMachine();
    await world.mirrors.measure(ref, first, signal);
    expect(gitDir(ref, 'rev-parse', 'HEAD')).toBe(first);
  });

  test('is not changed by an overtaken save, and the next save continues from it', async () => {
    const bare = world.server.create('raced.git');
    const tip = commitFiles(bare, { a: 'a' });
    const ref = world.ref();
    const { signal } = world.hooks();
    await world.mirrors.clone(ref, { url: world.server.url('raced.git') }, world.hooks());
    const move = (name: string) =>
      world.mirrors.receive(ref, { refs: [{ name: `refs/heads/${name}`, from: null, to: tip }] }, signal);
    world.records.beforeSave = async () => {
      world.records.beforeSave = async () => undefined;
      const now = await world.records.current(ref);
      if (now !== undefined) world.records.saved.set(ref.itemId, { ...now, version: now.version + 1 });
    };
    await expect(move('one')).rejects.toMatchObject({ code: 'GIT_CONFLICT' });
    const after = await move('two');
    expect(Object.keys(after.manifest.refs)).toContain('refs/heads/two');
    expect(Object.keys(after.manifest.refs)).not.toContain('refs/heads/one');
  });

  test('is removed with its repository', async () => {
    const bare = world.server.create('gone.git');
    commitFiles(bare, { a: 'a' });
    const ref = world.ref();
    await world.mirrors.clone(ref, { url: world.server.url('gone.git') }, world.hooks());
    await world.mirrors.remove(ref, world.hooks().signal);
    await world.mirrors.remove(ref, world.hooks().signal);
    expect(existsSync(world.folderOf(ref))).toBe(false);
  });
});
