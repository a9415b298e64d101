import { randomBytes } from 'node:crypto';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { ownProcessesDir } from '../../../integrations/computers/processes/processStore.ts';
import type { GitTrees } from '../../../integrations/git/treeTypes.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { buildTrees } from '../../builders/trees.ts';
import { commitFiles, gitIn } from '../../support/gitRepository.ts';
import { drivers } from '../computers/drivers.ts';

// One driver is enough, since the tests of computers cover the differences.
const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options)).slice(0, 1);
const author = { name: 'Ada Lovelace', email: 'ada@example.com' };
const { signal } = new AbortController();
let world: MirrorsWorld;

beforeAll(async () => {
  world = await buildMirrors();
});
afterAll(() => world[Symbol.asyncDispose]());

describe.each(usable)('GitTrees with $name', ({ options }) => {
  type Tested = Awaited<ReturnType<typeof buildTrees>>;
  let all: Tested;
  let built: Tested['built'];
  let computer: Tested['computer'];
  let trees: GitTrees;
  beforeAll(async () => {
    all = await buildTrees(world, options);
    ({ built, computer, trees } = all);
  });
  afterAll(() => all[Symbol.asyncDispose]());
  const run = (command: string) => all.run(command);
  const restart = () => all.restart();
  const treesWith = (...given: Parameters<Tested['treesWith']>) => all.treesWith(...given);
  const filled = (...given: Parameters<Tested['filled']>) => all.filled(...given);

  it('fills a complete tree with branch, upstream and origin, and a second fill changes nothing', async () => {
    const { work, path, state, source, filling } = await filled({ 'a.txt': 'one\n', 'folder/b.txt': 'two\n' });
    const status = await trees.status(work(), signal);
    expect(status).toEqual({
      branch: 'main',
      commit: state.manifest.refs['refs/heads/main'],
      upstream: 'origin/main',
      ahead: 0,
      behind: 0,
      unfinished: null,
      changes: [],
      truncated: false,
    });
    expect(await run(`cd ${path}; cat a.txt folder/b.txt; git config remote.origin.url; git fsck; ls -A ..`)).toBe(
      `one\ntwo\n${source.url}\n${path.split('/')[1]}\n`,
    );
    await run(`echo mine > ${path}/a.txt`);
    await trees.fill(filling, null, state, { url: source.url }, signal);
    await trees.fill(work(), null, state, { url: source.url }, signal);
    expect(await run(`cat ${path}/a.txt; ls -A .cache/atrium/git`)).toBe('mine\n');
  });

  it('fills the tree of a shallow clone', async () => {
    const { path, state } = await filled({ 'a.txt': 'one\n' }, { depth: 1 });
    expect(state.manifest.shallow).toHaveLength(1);
    expect(await run(`cd ${path}; git log --format=%s | wc -l; git fsck; cat a.txt`)).toBe('1\none\n');
  });

  it('reports missing objects of a partial clone, and does not fetch them from a remote', async () => {
    const { work, path } = await filled({ 'a.txt': 'one\n', 'first.txt': 'other\n' }, { filter: 'blob:none' });
    world.server.reset();
    await expect(trees.diff(work(), { from: 'main~1', to: 'main' }, signal)).rejects.toMatchObject({
      code: 'GIT_OBJECTS_MISSING',
    });
    // A remote in the tree's own settings is not run either.
    await run(`cd ${path}; git config remote.origin.url 'ext::touch hooked'; git config protocol.ext.allow always`);
    await expect(trees.diff(work(), { from: 'main~1', to: 'main' }, signal)).rejects.toMatchObject({
      code: 'GIT_OBJECTS_MISSING',
    });
    expect([world.server.requests, await run(`cd ${path}; ls hooked 2>/dev/null`)]).toEqual([[], '']);
    expect((await trees.log(work(), { limit: 5 }, signal)).commits).toHaveLength(2);
  });

  it('removes a tree with everything that belongs to it, and no other folder', async () => {
    const { work, path } = await filled();
    await run(`cd ${path}; touch mine
      for way in in out new; do mkdir -p ~/.cache/atrium/git/$(cat .git/atrium-item)-$way/x; done`);
    await trees.remove({ ...work(), itemId: 'itm_other' }, signal);
    expect(await run(`ls ${path}/mine`)).toContain('mine');
    await trees.remove(work(), signal);
    expect(await run(`ls -A -d ${path} .cache/atrium/git/* 2>/dev/null`)).toBe('');
    await trees.remove(work(), signal);
  });

  it('does not fill a folder that exists', async () => {
    const { ref, work, path, state } = await filled();
    await run(`mkdir ${path}x; echo mine > ${path}x/file`);
    const there = { ...work(), path: `${path}x` };
    await expect(trees.fill(there, null, state, { url: null }, signal)).rejects.toMatchObject({
      code: 'GIT_TREE_OCCUPIED',
    });
    await expect(trees.status(there, signal)).rejects.toMatchObject({ code: 'GIT_TREE_MISSING' });
    expect(await trees.isFilled({ ...work(), itemId: 'itm_other' }, signal)).toBe(false);
    expect(await trees.isFilled({ ...work(), ...ref }, signal)).toBe(true);
  });

  it('lists every kind of change, and cuts a too long list', async () => {
    const { work, path } = await filled({ 'a.txt': 'a\n', 'b.txt': 'b\n', 'c.txt': 'c c c c\n', 'd.txt': 'd\n' });
    await run(`cd ${path}; echo 1 > a.txt; rm b.txt; git mv c.txt 'c 2.txt'; echo new > 'ü\nx'; echo s > s; git add s`);
    const { changes } = await trees.status(work(), signal);
    const none = { oldPath: null, staged: null };
    expect(changes.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { ...none, path: 'a.txt', unstaged: 'modified' },
      { ...none, path: 'b.txt', unstaged: 'deleted' },
      { path: 'c 2.txt', oldPath: 'c.txt', staged: 'renamed', unstaged: null },
      { ...none, path: 's', staged: 'added', unstaged: null },
      { ...none, path: 'ü\nx', unstaged: 'untracked' },
    ]);
    await run(`cd ${path}; mkdir many; cd many; seq 3000 | xargs touch`);
    const many = await trees.status(work(), signal);
    expect([many.changes.length, many.truncated]).toEqual([2_000, true]);
  });

  it("commits in the user's name once for each order, and the commit gets into the mirror", async () => {
    const { ref, work, path, save } = await filled();
    await run(`cd ${path}; echo two >> a.txt; echo new > b.txt; rm first.txt`);
    const order = work();
    const commit = { message: 'Say more\n\nWith a body.', author, at: new Date('2026-01-31T12:00:00Z') };
    const made = await trees.commit(order, commit, signal);
    expect(made.output).toMatch(/^\[main [0-9a-f]+\] Say more\n 3 files changed/);
    const { commits } = await trees.log(work(), { limit: 1 }, signal);
    expect(commits).toEqual([
      {
        id: made.id,
        parents: [expect.stringMatching(/^[0-9a-f]{40}$/)],
        author,
        committer: author,
        committedAt: '2026-01-31T12:00:00+00:00',
        message: 'Say more\n\nWith a body.',
      },
    ]);
    // The same order returns the same commit. Another order finds nothing to commit.
    expect(await trees.commit(order, commit, signal)).toEqual(made);
    await expect(trees.commit(work(), commit, signal)).rejects.toMatchObject({ code: 'GIT_NOTHING_TO_COMMIT' });
    const { manifest } = await save();
    expect(manifest.refs['refs/heads/main']).toBe(made.id);
    expect((await world.mirrors.state(ref))?.manifest.refs['refs/heads/main']).toBe(made.id);
  });

  it('commits only the given paths', async () => {
    const { work, path } = await filled();
    await run(`cd ${path}; echo 2 > a.txt; echo 2 > first.txt; echo 2 > '*.txt'`);
    await trees.commit(work(), { message: 'One', author, at: new Date(), paths: ['a.txt', '*.txt'] }, signal);
    expect(await run(`cd ${path}; git show --format= --name-only HEAD; git status --porcelain`)).toBe(
      '*.txt\na.txt\n M first.txt\n',
    );
  });

  it('commits once, although the process was lost before its end was seen', async () => {
    const { work, path } = await filled();
    await run(`cd ${path}; echo 2 > a.txt`);
    const order = work();
    const commit = { message: 'Once', author, at: new Date() };
    const { id } = await trees.commit(order, commit, signal);
    // As after a power failure, the process is forgotten. Another change has been made since.
    await built.host.stop(computer.computerId);
    const processes = ownProcessesDir(join(built.dir, computer.computerId, 'processes'));
    renameSync(join(processes, `${order.workId}-change`), join(processes, 'gone'));
    await restart();
    await run(`cd ${path}; echo 3 > a.txt`);
    expect((await trees.commit(order, commit, signal)).id).toBe(id);
    expect(await run(`cd ${path}; git rev-list --count HEAD; git diff --stat | wc -l`)).toBe('3\n2\n');
    expect((await trees.commit(work(), commit, signal)).id).not.toBe(id);
  });

  it("creates branches and returns git's output, and refuses invalid ones", async () => {
    const { work, path, save } = await filled();
    expect(await trees.branch(work(), { name: 'quiet', checkout: false }, signal)).toEqual({ output: '' });
    expect(await trees.branch(work(), { name: 'ok', checkout: true }, signal)).toEqual({
      output: "Switched to a new branch 'ok'",
    });
    expect(await trees.checkout(work(), { branch: 'main' }, signal)).toMatchObject({
      output: expect.stringMatching(/^Switched to branch 'main'/),
    });
    const refused = (name: string, from?: string) => trees.branch(work(), { name, from, checkout: false }, signal);
    await expect(refused('ok')).rejects.toMatchObject({ code: 'GIT_BRANCH_EXISTS' });
    await expect(refused('--all')).rejects.toMatchObject({ code: 'GIT_BRANCH_NAME_REFUSED' });
    await expect(trees.checkout(work(), { branch: '--detach' }, signal)).rejects.toMatchObject({
      code: 'GIT_BRANCH_NAME_REFUSED',
    });
    await expect(refused('ok/child')).rejects.toMatchObject({ code: 'GIT_BRANCH_NAME_REFUSED' });
    await expect(refused('other', '--all')).rejects.toMatchObject({ code: 'GIT_REF_UNKNOWN' });
    await expect(trees.checkout(work(), { branch: 'nowhere' }, signal)).rejects.toMatchObject({
      code: 'GIT_REF_UNKNOWN',
    });
    await run(`cd ${path}; git branch -D quiet`);
    const { manifest } = await save();
    expect(Object.keys(manifest.refs).filter((name) => name.startsWith('refs/heads/'))).toEqual([
      'refs/heads/main',
      'refs/heads/ok',
    ]);
    expect((await trees.branches(work(), signal)).map(({ name, isCurrent }) => [name, isCurrent])).toEqual([
      ['main', true],
      ['ok', false],
      ['origin/main', false],
    ]);
  });

  it('refuses to save more refs than a remote may have, without sending anything', async () => {
    const { ref, work, path } = await filled();
    const { bundleOut } = treesWith({ maxRefs: 5 });
    const state = await world.mirrors.state(ref);
    if (state === undefined) throw new Error('Nothing is saved.');
    await run(`cd ${path}; git -c user.name=A -c user.email=a@x commit -q --allow-empty -m more
      for name in a b c; do git branch $name; git tag v$name; done`);
    await expect(bundleOut(work(), state, signal)).rejects.toMatchObject({ code: 'GIT_TOO_LARGE' });
    expect(await run(`ls -A .cache/atrium/git | grep ${ref.itemId}`)).toBe('');
    await run(`cd ${path}; git tag -d vb vc`);
    const { refs } = await bundleOut(work(), state, signal);
    expect(refs).toHaveLength(5);
  });

  it('saves only branches and tags, also with a manipulated git inside', async () => {
    const { ref, work, path } = await filled();
    const state = await world.mirrors.state(ref);
    if (state === undefined) throw new Error('Nothing is saved.');
    await run(`mkdir -p ~/.local/bin; cat > ~/.local/bin/git <<'end'
#!/bin/sh
[ "$1" != for-each-ref ] || for name in atrium/drafts/drf_1/heads/main atrium/wip remotes/origin/more heads/more; do
  echo "$(/usr/bin/git -C ~/${path} rev-parse HEAD) refs/$name"
done
exec /usr/bin/git "$@"
end
      chmod +x ~/.local/bin/git`);
    const { refs } = await trees.bundleOut(work(), state, signal);
    await run('rm ~/.local/bin/git');
    expect(refs.map(({ name }) => name)).toEqual(['refs/heads/more']);
  });

  it('refuses a checkout that would lose uncommitted changes', async () => {
    const { work, path } = await filled();
    await run(`cd ${path}; git checkout -q -b other; echo x > a.txt; git -c user.name=A -c user.email=a@x commit -qam x;
      git checkout -q main; echo mine > a.txt`);
    await expect(trees.checkout(work(), { branch: 'other' }, signal)).rejects.toMatchObject({
      code: 'GIT_CONFLICT',
      message: expect.stringMatching(/^What is changed in a\.txt would be lost\. Commit it, or discard it/),
    });
    expect(await run(`cat ${path}/a.txt`)).toBe('mine\n');
    // The same for an untracked file.
    await run(`cd ${path}; git checkout -q -- a.txt; git checkout -q other; echo n > 'n 1.txt'; git add .;
      git -c user.name=A -c user.email=a@x commit -qam n; git checkout -q main; echo mine > 'n 1.txt'`);
    await expect(trees.checkout(work(), { branch: 'other' }, signal)).rejects.toMatchObject({
      code: 'GIT_CONFLICT',
      message: expect.stringMatching(/^n 1\.txt would be overwritten, and is in no commit\. Commit it/),
    });
  });

  it('pages through a log that grows meanwhile, and shows diffs', async () => {
    const { work, path } = await filled();
    const first = await trees.log(work(), { limit: 1 }, signal);
    await run(
      `cd ${path}; echo more >> a.txt; git -c user.name=A -c user.email=a@x commit -qam later; echo 3 >> a.txt`,
    );
    const second = await trees.log(work(), { limit: 1, after: first.next ?? '' }, signal);
    expect([first, second].flatMap(({ commits }) => commits.map(({ id }) => id))).toEqual(
      gitIds(await run(`cd ${path}; git rev-list main~1`)),
    );
    expect(second.next).toBeNull();
    const { text } = await trees.diff(work(), {}, signal);
    expect(text).toMatch(/^diff --git a\/a.txt b\/a.txt\n[\s\S]*\n\+3\n$/);
    expect((await trees.diff(work(), { from: 'main~1', to: 'main', paths: ['a.txt'] }, signal)).text).toContain(
      '+more',
    );
    expect((await trees.diff(work(), { staged: true }, signal)).text).toBe('');
    await expect(trees.diff(work(), { from: '--output=x' }, signal)).rejects.toMatchObject({ code: 'GIT_REF_UNKNOWN' });
    await run(`cd ${path}; head -c 3000000 /dev/zero | tr '\\0' 'x' | fold -w 80 > a.txt`);
    const cut = await trees.diff(work(), {}, signal);
    expect([cut.truncated, Buffer.byteLength(cut.text)]).toEqual([true, 1_048_576]);
  });

  it("brings the remote's commits, branches and deletions", async () => {
    const { work, path, bare, bring } = await filled();
    const next = commitFiles(bare, { 'a.txt': 'theirs\n' });
    gitIn(bare, 'branch', 'feature', next);
    await bring();
    expect(await trees.status(work(), signal)).toMatchObject({ ahead: 0, behind: 1 });
    const merge = { ref: 'refs/remotes/origin/main', author, at: new Date(), fastForwardOnly: true };
    expect((await trees.merge(work(), merge, signal)).output).toContain('Fast-forward');
    expect(await run(`cat ${path}/a.txt`)).toBe('theirs\n');
    expect((await trees.checkout(work(), { branch: 'feature' }, signal)).output).toContain('feature');
    gitIn(bare, 'branch', '-D', 'feature');
    await bring();
    expect((await trees.branches(work(), signal)).map(({ name }) => name)).toEqual(['feature', 'main', 'origin/main']);
    // Now both sides have new commits.
    await trees.checkout(work(), { branch: 'main' }, signal);
    await run(`cd ${path}; echo ours > a.txt; git -c user.name=A -c user.email=a@x commit -qam ours`);
    commitFiles(bare, { 'a.txt': 'theirs again\n' });
    await bring();
    await expect(trees.merge(work(), merge, signal)).rejects.toMatchObject({
      code: 'GIT_CONFLICT',
      message: expect.stringMatching(/^Both sides have commits .* Merge /),
    });
    await expect(trees.merge(work(), { ...merge, fastForwardOnly: false }, signal)).rejects.toMatchObject({
      code: 'GIT_CONFLICT',
    });
    expect(await run(`cd ${path}; git status --porcelain; cat a.txt`)).toBe('ours\n');
  });

  it('brings a branch whose name becomes the folder of another, and the reverse', async () => {
    const { work, bare, bring } = await filled();
    const remote = async () => (await trees.branches(work(), signal)).map(({ name }) => name).slice(1);
    gitIn(bare, 'branch', 'feature', 'main');
    for (const [from, to] of [
      ['feature', 'feature/x'],
      ['feature/x', 'feature/x/y'],
      ['feature/x/y', 'feature'],
    ] as const) {
      await bring();
      expect(await remote()).toEqual([`origin/${from}`, 'origin/main']);
      gitIn(bare, 'branch', '-m', from, to);
      await bring();
      expect(await remote()).toEqual([`origin/${to}`, 'origin/main']);
    }
  });

  it('brings new tags, and does not move or remove existing ones', async () => {
    const { ref, work, path, bare, source, bring, save } = await filled();
    gitIn(bare, 'tag', 'theirs', 'main');
    await run(`cd ${path}; git tag mine main~1; git tag both main~1; git tag folder/mine`);
    await save();
    gitIn(bare, 'tag', 'both', 'main');
    gitIn(bare, 'tag', 'mine/below', 'main');
    gitIn(bare, 'tag', 'folder', 'main');
    const tags = () => run(`cd ${path}; git for-each-ref --format='%(refname:short) %(objectname)' refs/tags`);
    const [first, tip] = [gitIn(bare, 'rev-parse', 'main~1'), gitIn(bare, 'rev-parse', 'main')];
    const expected = `both ${first}\nfolder/mine ${tip}\nmine ${first}\ntheirs ${tip}\n`;
    await bring();
    expect(await tags()).toBe(expected);
    gitIn(bare, 'tag', '-d', 'theirs');
    await bring();
    expect(await tags()).toBe(expected);
    // The same for a tag that was made in the tree since the last save.
    gitIn(bare, 'tag', 'late', 'main');
    await world.mirrors.fetch(ref, source, world.hooks());
    await run(`cd ${path}; git tag late main~1`);
    const now = await world.mirrors.state(ref);
    if (now !== undefined) await trees.update(work(), null, now, signal);
    expect(await run(`cd ${path}; git rev-parse late`)).toBe(`${first}\n`);
  });

  it('does not delete saved refs because the tree is damaged', async () => {
    const { ref, work, path, save } = await filled();
    const kept = `../kept-${ref.itemId}`;
    await run(`cd ${path}; git branch other; git tag v1; git pack-refs --all; cp .git/packed-refs ${kept}`);
    const { refs } = (await save()).manifest;
    expect(refs).toMatchObject({ 'refs/heads/other': expect.anything(), 'refs/tags/v1': expect.anything() });
    for (const damage of [
      ': > .git/refs/heads/other',
      'echo damaged > .git/refs/heads/main',
      'rm .git/packed-refs',
      'id=$(git rev-parse HEAD); echo $id > .git/refs/heads/main; : > .git/packed-refs',
      `sed -i '/refs.heads/d' .git/packed-refs`,
    ]) {
      await run(`cd ${path}; ${damage}`);
      await expect(save()).rejects.toMatchObject({ code: 'GIT_TREE_DAMAGED' });
      expect((await world.mirrors.state(ref))?.manifest.refs).toEqual(refs);
      await run(`cd ${path}; cp ${kept} .git/packed-refs; rm -f .git/refs/heads/*`);
    }
    expect((await save()).manifest.refs).toEqual(refs);
    // Refs that a user deletes are deleted.
    await run(`cd ${path}; git branch -D other; git tag -d v1`);
    const left = Object.entries(refs).filter(([name]) => !['refs/heads/other', 'refs/tags/v1'].includes(name));
    expect((await save()).manifest.refs).toEqual(Object.fromEntries(left));
    await run(`cd ${path}; git branch -m main trunk`);
    expect((await save()).manifest).toMatchObject({ head: 'refs/heads/trunk' });
    // The checked-out branch can be deleted too, as long as there is another one.
    await run(`cd ${path}; git branch other; git update-ref -d HEAD`);
    const { manifest } = await save();
    expect(Object.keys(manifest.refs).filter((name) => name.startsWith('refs/heads/'))).toEqual(['refs/heads/other']);
    await expect(trees.status(work(), signal)).resolves.toMatchObject({ branch: 'trunk', commit: null });
    await run(`cd ${path}; git symbolic-ref HEAD refs/heads/other; git update-ref -d HEAD`);
    await expect(save()).rejects.toMatchObject({ code: 'GIT_TREE_DAMAGED' });
    // A user who deleted the last branch can go on with a new commit.
    const { id } = await trees.commit(work(), { message: 'Anew', author, at: new Date() }, signal);
    expect((await save()).manifest.refs['refs/heads/other']).toBe(id);
  });

  it.each([
    ['merge', 'merge'],
    ['cherry-pick', 'cherryPick'],
    ['rebase', 'rebase'],
    ['revert', 'revert'],
  ])('reports an unfinished %s, and leaves it alone', async (command, unfinished) => {
    const { work, path, bare, bring } = await filled();
    await run(`cd ${path}; git config user.name A; git config user.email a@x;
      git checkout -q -b other; echo other > a.txt; git commit -qam other;
      git checkout -q main; echo ours > a.txt; git commit -qam ours`);
    commitFiles(bare, { 'a.txt': 'theirs\n' });
    await bring();
    const what = command === 'revert' ? 'main~1' : 'other';
    await run(`cd ${path}; git ${command} ${what}; echo resolved > a.txt; git add a.txt`);
    expect(await trees.status(work(), signal)).toMatchObject({ unfinished });
    const begun = () =>
      run(`cd ${path}; cat .git/HEAD a.txt; git status --porcelain; git branch;
        ls -d .git/MERGE_HEAD .git/*_PICK_HEAD .git/REVERT_HEAD .git/rebase-merge 2>/dev/null; true`);
    const before = await begun();
    expect(before).toMatch(/MERGE_HEAD|CHERRY_PICK_HEAD|REVERT_HEAD|rebase-merge/);
    const merge = (fastForwardOnly: boolean) =>
      trees.merge(work(), { ref: 'refs/remotes/origin/main', author, at: new Date(), fastForwardOnly }, signal);
    for (const change of [
      () => merge(true),
      () => merge(false),
      () => trees.checkout(work(), { branch: 'main' }, signal),
      () => trees.branch(work(), { name: 'aside', checkout: true }, signal),
    ]) {
      const message = expect.stringContaining('is not finished');
      await expect(change()).rejects.toMatchObject({ code: 'GIT_CONFLICT', message });
      expect(await begun()).toBe(before);
    }
    await run(`cd ${path}; git -c core.editor=true ${command} --continue`);
    expect(await begun()).toBe('ref: refs/heads/main\nresolved\n* main\n  other\n');
    expect(await trees.status(work(), signal)).toMatchObject({ unfinished: null });
  });

  it('removes the lock of a git that is gone, and reports a running git as GIT_TREE_BUSY', async () => {
    const { work, path } = await filled();
    await run(`cd ${path}; touch .git/index.lock .git/refs/heads/main.lock; echo 2 > a.txt`);
    await trees.commit(work(), { message: 'Unlocked', author, at: new Date() }, signal);
    // As with an editor that is open in a terminal.
    const client = await built.host.work(computer.computerId);
    await client.startProcess({
      processId: `prc_${randomBytes(4).toString('hex')}`,
      command: `cd ${path}; echo 3 > a.txt; git add -A; GIT_EDITOR='touch edits; while [ -e edits ]; do sleep 0.1; done; echo >' git -c user.name=A -c user.email=a@x commit`,
    });
    await run(`cd ${path}; while [ ! -e edits ]; do sleep 0.05; done; touch .git/index.lock`);
    await expect(trees.checkout(work(), { branch: 'main' }, signal)).rejects.toMatchObject({ code: 'GIT_TREE_BUSY' });
    await run(`cd ${path}; rm -f edits`);
    await expect(trees.checkout(work(), { branch: 'main' }, signal)).resolves.toBeDefined();
  });

  it('runs no hooks and no configured programs, and saves no objects that fsck refuses', async () => {
    const { work, path, save } = await filled();
    await run(`cd ${path}; printf '#!/bin/sh\\ntouch /home/*/hooked hooked\\nexit 1\\n' > .git/hooks/pre-commit;
      mkdir -p .git/hooks; cp .git/hooks/pre-commit .git/hooks/post-checkout; chmod +x .git/hooks/*;
      for key in core.fsmonitor core.pager gpg.program diff.external core.sshCommand core.askPass sequence.editor; do
        git config $key 'touch hooked; :'; done; git config core.hooksPath .git/hooks;
      git config commit.gpgSign true; git config core.editor 'sleep 1000'; echo 2 > a.txt`);
    await trees.diff(work(), {}, signal);
    await trees.status(work(), signal);
    await trees.commit(work(), { message: 'Quiet', author, at: new Date() }, signal);
    await trees.branch(work(), { name: 'b', checkout: true }, signal);
    expect(await run(`cd ${path}; find . -name hooked`)).toBe('');
    await run(`cd ${path}; blob=$(git hash-object -w a.txt);
      tree=$(printf '100644 blob %s\\t.git\\n' $blob | git -c core.protectHFS=false mktree --missing) &&
      git update-ref refs/heads/evil $(git -c user.name=A -c user.email=a@x commit-tree -m evil $tree)`);
    await expect(save()).rejects.toMatchObject({ code: 'GIT_OBJECTS_REFUSED' });
    await run(`cd ${path}; git update-ref -d refs/heads/evil`);
    expect((await save()).manifest.head).toBe('refs/heads/b');
  });

  it('works while the computer sleeps, and if it starts in the middle', async () => {
    const { work, path, save } = await filled();
    await built.host.stop(computer.computerId);
    await run(`cd ${path}; echo asleep > a.txt`);
    const { id } = await trees.commit(work(), { message: 'Asleep', author, at: new Date() }, signal);
    expect((await save()).manifest.refs['refs/heads/main']).toBe(id);
    // A filter delays the next commit until the computer has started.
    await run(`cd ${path}; git config filter.slow.clean 'touch ../begun; while [ -e ../hold ]; do sleep 0.1; done; cat';
      mkdir -p .git/info; echo '*.txt filter=slow' > .git/info/attributes; touch ../hold; echo started > a.txt`);
    const order = work();
    const committed = trees.commit(order, { message: 'Started', author, at: new Date() }, signal);
    expect(await run('while [ ! -e repositories/begun ]; do sleep 0.05; done; echo begun')).toBe('begun\n');
    computer.spec.generation += 1;
    await built.host.start(computer.spec);
    await run('rm -f repositories/hold');
    expect((await committed).output).toContain('Started');
    expect(await run(`cd ${path}; git rev-list --count HEAD; git status --porcelain`)).toBe('4\n');
  });

  it('leaves nothing after a failed fill, and does not touch neighbouring folders', async () => {
    const { ref, work, path, state, source } = await filled();
    const order = { ...work(), path: `repositories/${'n'.repeat(255)}` };
    const ours = `ls -A .cache/atrium/git | grep ${ref.itemId}`;
    const beside = `repositories/.${'n'.repeat(246)}.filling`;
    await run(`mkdir ${beside}; echo mine > ${beside}/file; rm -rf ${path}`);
    const damaged = { path: '', bytes: 5, manifest: state.manifest, open: () => Readable.from([Buffer.from('bytes')]) };
    const bundle = { ...damaged, async [Symbol.asyncDispose]() {} };
    await expect(trees.fill(order, bundle, state, { url: source.url }, signal)).rejects.toThrow();
    const cut = { ...bundle, open: () => Readable.from(failing()) };
    await expect(trees.fill(work(), cut, state, { url: source.url }, signal)).rejects.toThrow();
    expect(await run(`${ours}; ls -A repositories | grep -c nnn`)).toBe('1\n');
    const { bundle: whole } = await world.mirrors.bundleFor(ref, [], signal);
    await using made = whole;
    await trees.fill({ ...order, workId: `${order.workId}x` }, made, state, { url: source.url }, signal);
    expect(await run(`cat ${order.path}/a.txt ${beside}/file; ${ours}`)).toBe('one\nmine\n');
  });

  it('saves the commit of a branch with an unusable name', async () => {
    const { ref, work, path, save } = await filled();
    const long = 'n'.repeat(250);
    await run(`cd ${path}; git checkout -q -b ${long}; echo two > a.txt`);
    const { id } = await trees.commit(work(), { message: 'Two', author, at: new Date() }, signal);
    await save();
    const saved = (await world.mirrors.state(ref))?.manifest;
    expect(saved?.head).toBe(id);
    expect(Object.keys(saved?.refs ?? {})).not.toContain(`refs/heads/${long}`);
    // A branch without a commit does not change the saved head.
    await run(`cd ${path}; git symbolic-ref HEAD refs/heads/${long}x`);
    await save();
    expect((await world.mirrors.state(ref))?.manifest.head).toBe(id);
  });

  it('commits for a user with an odd name, and shows a log with any settings of the tree', async () => {
    const { work, path } = await filled();
    await run(`echo two > ${path}/a.txt`);
    const nameless = { name: '.', email: 'dot@example.com' };
    const { id } = await trees.commit(work(), { message: 'Two', author: nameless, at: new Date() }, signal);
    await run(`cd ${path}; git config log.showSignature true
      signed=$(git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----' \
        | git hash-object -t commit -w --stdin)
      git update-ref refs/heads/signed "$signed"`);
    const { commits } = await trees.log(work(), { from: 'signed', limit: 10 }, signal);
    expect(commits.map(({ author }) => author.name)).toEqual(['dot@example.com', 'Ada', 'Ada']);
    expect((await trees.log(work(), { limit: 1 }, signal)).commits[0]?.id).toBe(id);
  });
});

async function* failing(): AsyncGenerator<Buffer> {
  yield Buffer.from('bytes');
  throw new Error('ended');
}

function gitIds(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}

if (usable.length === 0) {
  it('trees are not tested on this machine, which has no driver', () => expect(usable).toEqual([]));
}
