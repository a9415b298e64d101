import { createReadStream, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describeFailure } from '../../../integrations/git/rules/describeFailure.ts';
import type { RepositoryRef } from '../../../integrations/git/types.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { commitFiles, gitIn, gitWith } from '../../support/gitRepository.ts';

/** The exchange between a mirror and a tree, and from a mirror to its remote. */
let world: MirrorsWorld;
beforeAll(async () => {
  world = await buildMirrors();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.server.reset());

const { signal } = new AbortController();
let count = 0;

async function cloned(): Promise<{ bare: string; ref: RepositoryRef; tip: string; source: { url: string } }> {
  count += 1;
  const name = `exchange${count}.git`;
  const bare = world.server.create(name);
  const tip = commitFiles(bare, { a: 'a', 'folder/b': 'b' });
  const ref = world.ref();
  const source = { url: world.server.url(name) };
  await world.mirrors.clone(ref, source, world.hooks());
  return { bare, ref, tip, source };
}

/** Makes a tree from a bundle, as a computer's git does. */
async function treeOf(ref: RepositoryRef): Promise<string> {
  const tree = temporaryFolder();
  await using made = (await world.mirrors.bundleFor(ref, [], signal)).bundle;
  gitIn(tree, 'clone', '--quiet', made?.path ?? '', '.');
  return tree;
}

function commitIn(tree: string, files: Record<string, string>): string {
  for (const [name, content] of Object.entries(files)) writeFileSync(join(tree, name), content);
  gitIn(tree, 'add', '-A');
  gitIn(tree, 'commit', '--quiet', '-m', 'In the tree');
  return gitIn(tree, 'rev-parse', 'HEAD');
}

function bundleOut(tree: string, ...revisions: string[]): Readable {
  const path = join(temporaryFolder(), 'out.bundle');
  gitIn(tree, 'bundle', 'create', '--quiet', path, ...revisions);
  return createReadStream(path);
}

const packsOf = (ref: RepositoryRef) =>
  readdirSync(join(world.folderOf(ref), 'mirror.git', 'objects', 'pack')).toSorted();

test("a tree's commit gets into the mirror, into the store, and into another tree", async () => {
  const { ref, tip } = await cloned();
  const tree = await treeOf(ref);
  const commit = commitIn(tree, { c: 'c' });
  const refs = [{ name: 'refs/heads/main', from: tip, to: commit }];
  const bundle = bundleOut(tree, 'main', `^${tip}`);
  expect(await world.mirrors.receive(ref, { bundle, refs }, signal)).toMatchObject({
    version: 2,
    manifest: { refs: { 'refs/heads/main': commit, 'refs/remotes/origin/main': tip } },
  });
  // Repeat it, as after a lost answer.
  const again = bundleOut(tree, 'main', `^${tip}`);
  expect(await world.mirrors.receive(ref, { bundle: again, refs }, signal)).toMatchObject({ version: 2 });

  world.loseMachine();
  expect(gitIn(await treeOf(ref), 'rev-parse', 'HEAD')).toBe(commit);
  const { bundle: rest } = await world.mirrors.bundleFor(ref, [tip, 'f'.repeat(40)], signal);
  expect(rest?.bytes).toBeLessThan(1_000);
  expect((await world.mirrors.bundleFor(ref, [commit], signal)).bundle).toBeNull();
});

test("a repository without a remote begins with a tree's commits", async () => {
  const tree = temporaryFolder();
  gitIn(tree, 'init', '--quiet', '--initial-branch=main');
  const commit = commitIn(tree, { a: 'a' });
  const ref = world.ref();
  const refs = [{ name: 'refs/heads/main', from: null, to: commit }];
  const state = await world.mirrors.receive(
    ref,
    { bundle: bundleOut(tree, 'main'), refs, head: 'refs/heads/main' },
    signal,
  );
  expect(state).toMatchObject({
    version: 1,
    manifest: { head: 'refs/heads/main', refs: { 'refs/heads/main': commit } },
  });
});

test('a damaged, incomplete or dangerous bundle, or another file, is refused and leaves nothing', async () => {
  const { ref, tip } = await cloned();
  const tree = await treeOf(ref);
  const first = commitIn(tree, { c: 'c' });
  const second = commitIn(tree, { d: 'd' });
  const before = packsOf(ref);
  const to = (id: string) => [{ name: 'refs/heads/main', from: tip, to: id }];
  const evil = gitWith(
    {
      cwd: tree,
      input: Buffer.concat([Buffer.from('40000 .git\0'), Buffer.from(gitIn(tree, 'rev-parse', 'HEAD^{tree}'), 'hex')]),
    },
    'hash-object',
    '-t',
    'tree',
    '-w',
    '--literally',
    '--stdin',
  );
  const evilCommit = gitIn(tree, 'commit-tree', '-m', 'x', '-p', tip, evil);
  gitIn(tree, 'branch', 'evil', evilCommit);
  const whole = Buffer.concat(await bundleOut(tree, 'main', `^${tip}`).toArray());
  for (const [bundle, target] of [
    [Readable.from([whole.subarray(0, whole.length - 30)]), second],
    [Readable.from([Buffer.from('# v2 git bundle\n')]), second],
    [Readable.from([Buffer.from('hello, this is nothing')]), second],
    [Readable.from([]), second],
    [bundleOut(tree, 'main', `^${first}`), second],
    [bundleOut(tree, 'evil', `^${tip}`), evilCommit],
    [bundleOut(tree, 'main', `^${tip}`), 'f'.repeat(40)],
    [undefined, second],
  ] as [Readable | undefined, string][]) {
    const received = world.mirrors.receive(ref, { bundle, refs: to(target) }, signal);
    await expect(received).rejects.toMatchObject({ code: 'GIT_OBJECTS_REFUSED' });
    expect(packsOf(ref)).toEqual(before);
  }
  expect(await world.mirrors.state(ref)).toMatchObject({ version: 1 });
});

test('invalid ref names, and moves whose old value or name conflicts, are refused', async () => {
  const { ref, tip } = await cloned();
  const move = (name: string, from: string | null = null) =>
    world.mirrors.receive(ref, { refs: [{ name, from, to: tip }] }, signal);
  for (const name of [
    'refs/replace/x',
    'HEAD',
    'refs/heads/../../config',
    'refs/heads/x.lock',
    'refs/heads/a b',
    'refs/heads/',
  ])
    await expect(move(name)).rejects.toMatchObject({ code: 'GIT_BRANCH_NAME_REFUSED' });
  await expect(move('refs/heads/x', tip)).rejects.toMatchObject({ code: 'GIT_CONFLICT' });
  await expect(move('refs/heads/main/below')).rejects.toMatchObject({ code: 'GIT_CONFLICT' });
  expect(await world.mirrors.state(ref)).toMatchObject({ version: 1 });
  // A branch may be replaced by one below its name.
  await move('refs/heads/side');
  const refs = [
    { name: 'refs/heads/side', from: tip, to: null },
    { name: 'refs/heads/side/below', from: null, to: tip },
  ];
  const { manifest } = await world.mirrors.receive(ref, { refs }, signal);
  expect(Object.keys(manifest.refs)).toContain('refs/heads/side/below');
});

test("a push sends the branch, returns git's output, and can be repeated", async () => {
  const { bare, ref, tip, source } = await cloned();
  const tree = await treeOf(ref);
  const commit = commitIn(tree, { c: 'c' });
  const bundle = bundleOut(tree, 'main', `^${tip}`);
  await world.mirrors.receive(ref, { bundle, refs: [{ name: 'refs/heads/main', from: tip, to: commit }] }, signal);
  const refs = [{ from: 'refs/heads/main', to: 'refs/heads/main' }];
  world.server.requires = 'me:secret-word';
  const secret = { ...source, credential: async () => ({ username: 'me', password: 'secret-word' }) };
  const pushed = await world.mirrors.push(ref, secret, refs, world.hooks());
  expect(gitIn(bare, 'rev-parse', 'main')).toBe(commit);
  expect(pushed).toMatchObject({ version: 3, manifest: { refs: { 'refs/remotes/origin/main': commit } } });
  expect(pushed.output).toContain('refs/heads/main');
  expect(pushed.output).not.toMatch(/https:|secret-word/);
  expect(await world.mirrors.push(ref, secret, refs, world.hooks())).toMatchObject({ version: 3 });
});

test("a credential that the server repeats is redacted in the push's output", async () => {
  const { bare, ref, tip, source } = await cloned();
  const hook = join(bare, 'hooks', 'post-receive');
  writeFileSync(hook, '#!/bin/sh\necho "You are secret-word, welcome."\n', { mode: 0o755 });
  world.server.requires = 'me:secret-word';
  const secret = { ...source, credential: async () => ({ username: 'me', password: 'secret-word' }) };
  await world.mirrors.receive(ref, { refs: [{ name: 'refs/heads/side', from: null, to: tip }] }, signal);
  const refs = [{ from: 'refs/heads/side', to: 'refs/heads/side' }];
  const { output } = await world.mirrors.push(ref, secret, refs, world.hooks());
  expect(output).toContain('You are [redacted], welcome.');
  expect(output).not.toContain('secret-word');
  const said = '!\tmain:main\t[remote rejected] (secret-word may not)';
  const { message } = describeFailure({ code: 1, signal: null, said: '', output: said }, ['secret-word']);
  expect(message).toBe('The remote refuses this: [redacted] may not.');
});

test("the error for an unreachable remote quotes git's message without address, path or secret", () => {
  const told = (said: string) =>
    describeFailure({ code: 128, signal: null, said, output: '' }, ['secret-word']).message;
  const at = "fatal: unable to access 'https://git.example.com/secret-word.git/':";
  expect(told(`${at} Failed to connect to 127.0.0.1 port 3128 after 0 ms: Couldn't connect to server`)).toMatch(
    /Git says: Failed to connect after 0 ms: Couldn't connect to server\.$/,
  );
  expect(told(`${at} server certificate verification failed. CAfile: /etc/ours.pem CRLfile: none`)).toMatch(
    /Git says: server certificate verification failed\.$/,
  );
  expect(told('error: RPC failed; secret-word\nfatal: early EOF')).toMatch(/Git says: early EOF\.$/);
  // Text from the remote itself is not quoted.
  expect(told('fatal: protocol error: bad line length character: secr')).not.toContain('secr');
});

test('a push fails without a change if the remote refuses it or its branch has moved', async () => {
  const { bare, ref, tip, source } = await cloned();
  const theirs = commitFiles(bare, { theirs: 'x' });
  const tree = await treeOf(ref);
  const ours = commitIn(tree, { ours: 'x' });
  const bundle = bundleOut(tree, 'main', `^${tip}`);
  await world.mirrors.receive(ref, { bundle, refs: [{ name: 'refs/heads/main', from: tip, to: ours }] }, signal);
  const push = (force: boolean) =>
    world.mirrors.push(ref, source, [{ from: 'refs/heads/main', to: 'refs/heads/main', force }], world.hooks());
  await expect(push(false)).rejects.toMatchObject({ code: 'GIT_CONFLICT' });
  // A forced push overwrites only commits that the mirror has seen.
  await expect(push(true)).rejects.toMatchObject({ code: 'GIT_CONFLICT' });
  expect(gitIn(bare, 'rev-parse', 'main')).toBe(theirs);
  await world.mirrors.fetch(ref, source, world.hooks());
  gitIn(bare, 'config', 'receive.denyNonFastForwards', 'true');
  await expect(push(true)).rejects.toMatchObject({ code: 'GIT_REMOTE_REFUSED' });
  gitIn(bare, 'config', 'receive.denyNonFastForwards', 'false');
  await push(true);
  expect(gitIn(bare, 'rev-parse', 'main')).toBe(ours);
  await world.mirrors.push(ref, source, [{ from: 'refs/heads/main', to: 'refs/heads/copy' }], world.hooks());
  const gone = await world.mirrors.push(ref, source, [{ from: null, to: 'refs/heads/copy' }], world.hooks());
  expect(gone.manifest.refs['refs/remotes/origin/copy']).toBeUndefined();
  expect(gitIn(bare, 'branch', '--list', 'copy')).toBe('');
});

test("a push removes the tracking refs of deleted remote branches that conflict with the new branch's name", async () => {
  const { bare, ref, tip, source } = await cloned();
  for (const [old, made] of [
    ['feature', 'feature/x'],
    ['feature/x', 'feature'],
  ] as const) {
    gitIn(bare, 'update-ref', `refs/heads/${old}`, tip);
    const { manifest } = await world.mirrors.fetch(ref, source, world.hooks());
    expect(manifest.refs).toHaveProperty([`refs/remotes/origin/${old}`], tip);
    gitIn(bare, 'update-ref', '-d', `refs/heads/${old}`);
    const refs = [{ from: 'refs/heads/main', to: `refs/heads/${made}` }];
    const pushed = (await world.mirrors.push(ref, source, refs, world.hooks())).manifest;
    expect(Object.keys(pushed.refs)).toEqual([
      'refs/heads/main',
      `refs/remotes/origin/${made}`,
      'refs/remotes/origin/main',
    ]);
    expect(gitIn(bare, 'rev-parse', made)).toBe(tip);
    gitIn(bare, 'update-ref', '-d', `refs/heads/${made}`);
    await world.mirrors.fetch(ref, source, world.hooks());
  }
});

test('a fetch brings new tags and does not change saved ones', async () => {
  const { bare, ref, tip, source } = await cloned();
  const tags = ['mine', 'both', 'folder/mine'].map((name) => ({ name: `refs/tags/${name}`, from: null, to: tip }));
  const { version, manifest } = await world.mirrors.receive(ref, { refs: tags }, signal);
  const later = commitFiles(bare, { later: 'x' }, { branch: 'later' });
  for (const name of ['both', 'folder', 'mine/below']) gitIn(bare, 'tag', name, later);
  gitIn(bare, 'branch', '-D', 'later');
  expect(await world.mirrors.fetch(ref, source, world.hooks())).toMatchObject({ version, manifest });
  gitIn(bare, 'tag', 'new', later);
  const fetched = await world.mirrors.fetch(ref, source, world.hooks());
  expect(fetched.manifest.refs).toEqual({ ...manifest.refs, 'refs/tags/new': later });
  gitIn(bare, 'tag', '-d', 'new');
  expect(await world.mirrors.fetch(ref, source, world.hooks())).toMatchObject({ version: version + 1 });
});

test('after a process ends between two steps of a change, the next process continues', async () => {
  const { bare, ref, source } = await cloned();
  const tip = commitFiles(bare, { more: 'x' });
  for (const ending of ['plan', 'save'] as const) {
    world.records.endsBefore = ending;
    await expect(world.mirrors.fetch(ref, source, world.hooks())).rejects.toThrow('ended');
    world.records.endsBefore = undefined;
    expect((await world.mirrors.state(ref))?.version).toBe(1);
    // Another machine does not see the change.
    const elsewhere = world.another({ ATRIUM_GIT_DIR: temporaryFolder() });
    await expect(elsewhere.measure(ref, tip, signal)).rejects.toMatchObject({ code: 'GIT_REF_UNKNOWN' });
  }
  const fetched = await world.mirrors.fetch(ref, source, world.hooks());
  expect(fetched).toMatchObject({ version: 2, manifest: { refs: { 'refs/remotes/origin/main': tip } } });
  expect(new Set(world.records.planned).size).toBe(world.records.planned.length);
});
