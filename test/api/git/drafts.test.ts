import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RowDataPacket } from 'mysql2/promise';
import type { operations } from '../../../api/generated/types.gen.ts';
import { buildChatUser } from '../../builders/chat.ts';
import { buildComputer, computerOf } from '../../builders/computer.ts';
import { buildHostedGit, treeOf } from '../../builders/hostedRepository.ts';
import { gitOf, remoteRepository, type TestGit } from '../../builders/repository.ts';
import { drivers } from '../../integrations/computers/drivers.ts';
import { commitFiles } from '../../support/gitRepository.ts';
import { inFull } from '../../support/inFull.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('git');

type Draft = operations['listDrafts']['responses'][200]['content']['application/json']['data'][number];
type Merged = operations['mergeDraft']['responses'][200]['content']['application/json'];

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));
const commit = 'git -c user.name=A -c user.email=a@example.com commit -qam';

describe.each(usable.slice(0, 1))('$name: drafts of a repository', () => {
  let product: TestGit;
  beforeAll(async () => {
    product = await buildHostedGit({ ATRIUM_GIT_DRAFT_SAVE_SECONDS: '1', ATRIUM_GIT_MAX_DRAFTS: '2' });
  });
  afterAll(() => product.close());
  beforeEach(() => product.server.reset());
  // Drafts that save themselves every second would slow down all later tests.
  let leave: () => Promise<unknown> = async () => undefined;
  afterEach(() => leave());

  async function cloned(files: Record<string, string> = { 'a.txt': 'one\n', 'b.txt': 'b\n' }, how: object = {}) {
    const user = await buildChatUser(product);
    const git = gitOf(user);
    const remote = remoteRepository(product.server, files);
    const { id } = (await git.clone({ url: remote.url, ...how })).body;
    const repository = await git.cloned(id);
    const computer = await buildComputer(product, user);
    const drafts = `/drive/drafts/${id}`;
    leave = () => user.fetch(`${git.space}/drive/items/${id}?permanent=true`, { method: 'DELETE' });
    const list = async () => (await git.send<{ data: Draft[] }>('GET', drafts)).body.data;
    const find = async (draftId: string) => {
      const found = (await list()).find((draft) => draft.id === draftId);
      if (found === undefined) throw new Error('There is no such draft.');
      return found;
    };
    const make = (branch: string, more: object = {}) =>
      git.send<{ id: string }>('POST', `${drafts}/draft`, { branch, ...more });
    const made = async (branch: string, more: object = {}) => {
      const answer = await make(branch, more);
      expect(answer).toMatchObject({ status: 200, body: { id: expect.stringMatching(/^drf_/) } });
      return find(answer.body.id);
    };
    const merge = (draftId: string, more: object = {}) =>
      git.send<Merged>('POST', `${drafts}/merge`, { draftId, ...more });
    const said = async ({ treePath }: { treePath: string }, command: string) =>
      (await computer.exec(`cd ${treePath} && { ${command}; }`)).stdout;
    const savedAfter = (draftId: string, since: number) =>
      waitFor('the draft to be saved', async () => {
        const at = Date.parse((await find(draftId)).savedAt ?? '');
        return at > since ? at : undefined;
      });
    /** Saved with all that is in the draft now: the next save to end may have looked before. */
    const saved = async (draftId: string) => savedAfter(draftId, await savedAfter(draftId, Date.now()));
    return {
      user,
      git,
      remote,
      id,
      repository,
      computer,
      tree: treeOf(git, id),
      drafts,
      list,
      find,
      make,
      made,
      merge,
      said,
      saved,
    };
  }

  const mirrorOf = (id: string) => join(product.environment.config.git.dir, id);
  const rowsOf = async (sql: string, values: unknown[]) =>
    (await product.environment.database.pool.query<RowDataPacket[]>(sql, values))[0];
  const refsOf = async (id: string) => {
    const sql = 'SELECT manifest FROM git_bundles WHERE item_id = ? ORDER BY version DESC LIMIT 1';
    const { refs } = JSON.parse((await rowsOf(sql, [id]))[0]?.manifest ?? '{}') as { refs: Record<string, string> };
    return refs;
  };
  const keptOf = async (id: string, draftId: string) =>
    Object.keys(await refsOf(id)).filter((name) => name.includes(draftId));

  test('A draft is a clone on a new branch, and outlives its folder, the mirror and a stop, committed or not', async () => {
    const { id, computer, made, list, said, saved, tree, repository } = await cloned();
    const draft = await made('try/this');
    expect(draft).toMatchObject({
      appId: id,
      branch: 'try/this',
      baseBranch: 'main',
      status: 'ready',
      computerId: computer.id,
      treePath: `drafts/${repository.name}/try-this`,
      error: null,
      merged: null,
    });
    // The draft did not need the repository's own tree.
    expect(await tree.status()).toMatchObject({ status: 409, code: 'GIT_TREE_MISSING' });
    expect(await said(draft, 'cat a.txt; git symbolic-ref HEAD; git status --porcelain')).toBe(
      'one\nrefs/heads/try/this\n',
    );
    await said(
      draft,
      `echo two > a.txt; ${commit} two; echo three > a.txt; mkdir -p new; echo n > new/n.txt; rm b.txt`,
    );
    const look = 'git log --format=%s -1; git status --porcelain; cat a.txt new/n.txt; git symbolic-ref HEAD';
    const before = await said(draft, look);
    expect(before).toBe('two\n M a.txt\n D b.txt\n?? new/\nthree\nn\nrefs/heads/try/this\n');
    await saved(draft.id);
    expect(await said(draft, look)).toBe(before);

    await computer.exec('rm -rf drafts');
    rmSync(mirrorOf(id), { recursive: true, force: true });
    await waitFor('the draft to come back', async () => (await said(draft, look)) === before);

    // The last changes are saved when the computer has gone to sleep.
    const uncommitted = async () => (await refsOf(id))[`refs/atrium/drafts/${draft.id}/wip`];
    const earlier = await uncommitted();
    await said(draft, 'echo last > last.txt');
    await computer.expect(200, 'POST', '/stop');
    await waitFor('the last change to be saved', async () => (await uncommitted()) !== earlier);
    await computer.exec('rm -rf drafts');
    await waitFor('the draft to come back', async () => (await said(draft, 'cat last.txt')) === 'last\n');
    // Changes that were undone are no longer saved.
    await said(draft, 'git checkout -q .; git clean -fdq');
    await saved(draft.id);
    expect((await keptOf(id, draft.id)).toSorted()).toEqual([`refs/atrium/drafts/${draft.id}/heads/try/this`]);
    expect(await list()).toMatchObject([{ id: draft.id, error: null }]);
  }, 240_000);

  full.test(
    'A draft comes back at a commit that is on no branch',
    async () => {
      const { id, computer, made, said, saved } = await cloned();
      const draft = await made('try');
      await said(draft, `git checkout -q --detach; echo two > a.txt; ${commit} two`);
      await saved(draft.id);
      expect(await keptOf(id, draft.id)).toContain(`refs/atrium/drafts/${draft.id}/head`);
      const look = 'cat a.txt; git rev-parse HEAD; git branch --show-current; git status --porcelain';
      const before = await said(draft, look);
      await computer.exec('rm -rf drafts');
      await waitFor('the draft to come back', async () => (await said(draft, look)) === before);
      await said(draft, 'git checkout -q try');
      await saved(draft.id);
      expect(await keptOf(id, draft.id)).toEqual([`refs/atrium/drafts/${draft.id}/heads/try`]);
    },
    240_000,
  );

  full.test(
    'A draft is saved without what git cannot read in it, and says so',
    async () => {
      const { id, list, made, merge, said, saved } = await cloned();
      const draft = await made('try');
      const long = `git branch ${'x'.repeat(230)}`;
      await said(
        draft,
        `echo two > a.txt; git init -q nested; echo n > nested/n; echo b2 > b.txt; chmod 000 b.txt; ${long}`,
      );
      await saved(draft.id);
      const [{ error } = { error: null }] = await list();
      expect(error).toMatchObject({ code: 'GIT_DRAFT_INCOMPLETE', detail: expect.stringContaining('nested') });
      expect(error?.detail).toContain('b.txt');
      expect(error?.detail).toContain('heads/xxx');
      const wip = `refs/atrium/drafts/${draft.id}/wip`;
      const kept = (await refsOf(id))[wip];
      expect(kept).toMatch(/^[0-9a-f]{40}$/);
      expect(await merge(draft.id)).toMatchObject({ status: 409, code: 'GIT_DRAFT_UNCOMMITTED' });

      // Where git can add nothing at all, commits are saved, and the uncommitted changes of the last save are kept.
      await said(
        draft,
        `rm -r nested; chmod 600 b.txt; ${long.replace('branch', 'branch -D')}; git config filter.x.clean false; git config filter.x.required true
       mkdir -p .git/info; echo '*.txt filter=x' > .git/info/attributes; echo three > a.txt; git branch more`,
      );
      await waitFor('the saved branch', async () =>
        (await keptOf(id, draft.id)).some((name) => name.endsWith('/more')),
      );
      await waitFor('the failure', async () => (await list())[0]?.error?.code === 'GIT_TREE_FAILED');
      expect((await refsOf(id))[wip]).toBe(kept);
      await said(draft, 'rm .git/info/attributes');
      await saved(draft.id);
      expect(await list()).toMatchObject([{ error: null }]);
      expect((await refsOf(id))[wip]).not.toBe(kept);
    },
    240_000,
  );

  test('A draft is merged by a fast-forward or a commit, and uncommitted changes need a message', async () => {
    const { made, merge, said, tree, repository, list, user } = await cloned();
    expect(await tree.post('checkout', {})).toMatchObject({ status: 200 });
    const draft = await made('try');
    // Changed right after the checkout, so that only the age of the index says that the file may have changed.
    const then = 'touch -d @1700000000';
    await said(
      draft,
      `git config core.trustctime false; git config core.checkStat minimal; ${then} a.txt; git update-index -q --refresh;
       ${then} .git/index; echo two > a.txt; ${then} a.txt`,
    );
    expect(await merge(draft.id)).toMatchObject({ status: 409, code: 'GIT_DRAFT_UNCOMMITTED' });
    const merged = await merge(draft.id, { message: 'Say two' });
    expect(merged).toMatchObject({ status: 200, body: { branch: 'main', fastForward: true } });
    expect((await tree.status()).body).toMatchObject({ branch: 'main', commit: merged.body.commit, changes: [] });
    expect(await said(repository, 'cat a.txt; git log -1 --format="%s %ae"')).toBe(`two\nSay two ${user.email}\n`);
    expect(await list()).toMatchObject([{ id: draft.id, status: 'ready', merged: { commit: merged.body.commit } }]);

    await said(draft, `echo three > a.txt; ${commit} three`);
    await said(repository, `echo ours > b.txt; ${commit} ours`);
    const joined = await merge(draft.id);
    expect(joined).toMatchObject({ status: 200, body: { branch: 'main', fastForward: false } });
    expect(await said(repository, 'cat a.txt b.txt; git log -1 --format="%s %ae"; git status --porcelain')).toBe(
      `three\nours\nMerge draft try ${user.email}\n`,
    );
    expect((await tree.status()).body).toMatchObject({ commit: joined.body.commit });
    // Nothing is left to merge.
    expect(await merge(draft.id)).toMatchObject({ status: 200, body: { commit: joined.body.commit } });
  }, 240_000);

  full.test(
    'A conflict is reported and changes nothing, and is resolved in the draft',
    async () => {
      const { id, made, merge, said, tree, repository } = await cloned();
      await tree.post('checkout', {});
      const draft = await made('try');
      await said(draft, `echo draft > a.txt; ${commit} draft`);
      await said(repository, `echo ours > a.txt; ${commit} ours`);
      const look = 'cat a.txt; git rev-parse HEAD; git status --porcelain; ls -A .git';
      // Uncommitted changes are committed, and the answer says that this commit stays.
      await said(draft, 'echo more > b.txt');
      const telling = await merge(draft.id, { message: 'More' });
      const [committed = ''] = (await said(draft, 'git log -1 --format="%h %s" --abbrev=10')).split(' More\n');
      expect(telling).toMatchObject({
        status: 409,
        code: 'GIT_CONFLICT',
        body: { detail: expect.stringMatching(new RegExp(`a\\.txt.*uncommitted .* ${committed}\\.$`)) },
      });
      const [before, ours] = [await said(draft, look), await said(repository, look)];
      const refused = await merge(draft.id);
      expect(refused).toMatchObject({
        status: 409,
        code: 'GIT_CONFLICT',
        body: { detail: expect.stringContaining('a.txt') },
      });
      expect([await said(draft, look), await said(repository, look)]).toEqual([before, ours]);

      await said(
        draft,
        `git -c user.name=A -c user.email=a@b.c merge -q origin/main; echo both > a.txt; ${commit} both`,
      );
      // Uncommitted changes in the repository prevent the merge as well.
      await said(repository, 'echo mine > a.txt');
      expect(await merge(draft.id)).toMatchObject({ status: 409, code: 'GIT_CONFLICT' });
      expect(await said(repository, 'cat a.txt; git log -1 --format=%s')).toBe('mine\nours\n');
      await said(repository, 'git checkout -q a.txt');
      expect(await merge(draft.id)).toMatchObject({ status: 200, body: { fastForward: true } });
      expect(await said(repository, 'cat a.txt')).toBe('both\n');
      expect((await keptOf(id, draft.id)).length).toBeGreaterThan(0);
    },
    240_000,
  );

  full.test(
    'A draft is merged without the files of its repository, and into the branch that it was made from',
    async () => {
      const { remote, made, merge, said, tree, repository } = await cloned();
      const draft = await made('main');
      expect(draft).toMatchObject({ branch: 'main', baseBranch: 'main', baseCommit: remote.commit });
      await said(draft, `echo two > a.txt; ${commit} two`);
      const { body } = await merge(draft.id);
      expect(body).toMatchObject({ branch: 'main', fastForward: true });
      expect(await tree.post('checkout', {})).toMatchObject({ status: 200 });
      expect(await said(repository, 'cat a.txt; git rev-parse HEAD')).toBe(`two\n${body.commit}\n`);

      // A branch that is not checked out moves too.
      expect(await tree.post('branch', { name: 'side', checkout: false })).toMatchObject({ status: 200 });
      const side = await made('side');
      await said(side, `echo side > side.txt; git add .; ${commit} side`);
      const beside = await merge(side.id);
      expect(beside).toMatchObject({ status: 200, body: { branch: 'side', fastForward: true } });
      expect(await said(repository, 'git rev-parse side; git symbolic-ref HEAD; git status --porcelain')).toBe(
        `${beside.body.commit}\nrefs/heads/main\n`,
      );
    },
    240_000,
  );

  full.test(
    'A draft of a partial clone has the files of a branch that only the remote has',
    async () => {
      const { id, computer, remote, made, find, said, saved, tree } = await cloned(
        { 'a.txt': 'one\n' },
        { filter: 'blob:none' },
      );
      commitFiles(remote.bare, { 'a.txt': 'other\n' }, { branch: 'other' });
      await tree.post('pull', {});
      const draft = await made('other');
      expect(draft).toMatchObject({ baseBranch: 'other' });
      expect(await said(draft, 'cat a.txt; git status --porcelain')).toBe('other\n');
      // The machine with the mirror is lost, and so are the files. Files that the remote has are not saved.
      await said(draft, `echo b > b.txt; git add .; ${commit} b; echo c > c.txt`);
      await saved(draft.id);
      rmSync(mirrorOf(id), { recursive: true, force: true });
      await computer.exec('rm -rf drafts');
      const look = 'cat a.txt b.txt c.txt; git log --format=%s -1; git status --porcelain';
      await waitFor('the draft to come back', async () => (await said(draft, look)) === 'other\nb\nc\nb\n?? c.txt\n');
      expect(await find(draft.id)).toMatchObject({ error: null });
    },
    240_000,
  );

  test('The API reads a draft and commits in it, as in its repository', async () => {
    const { id, git, made, said, tree, user } = await cloned();
    const draft = await made('try');
    const get = async <T>(what: string, more = '') =>
      (await git.send<T>('GET', `/git/${id}/${what}?draftId=${draft.id}${more}`)).body;
    const commitAs = (message: string, more: object = {}) =>
      tree.post<{ commit: string }>('commit', { message, draftId: draft.id, ...more });
    await said(draft, 'echo two > a.txt; echo n > n.txt');
    expect(await get('status')).toMatchObject({
      branch: 'try',
      changes: [
        { path: 'a.txt', unstaged: 'modified' },
        { path: 'n.txt', unstaged: 'untracked' },
      ],
    });
    expect(await get('diff', '&path=a.txt')).toMatchObject({ text: expect.stringContaining('+two') });
    const { status, body } = await commitAs('Say two', { paths: ['a.txt'] });
    expect({ status, body }).toMatchObject({ status: 200, body: { commit: expect.stringMatching(/^[0-9a-f]{40}$/) } });
    expect((await refsOf(id))[`refs/atrium/drafts/${draft.id}/heads/try`]).toBe(body.commit);
    expect(await get('log', '&limit=1')).toMatchObject({
      data: [{ id: body.commit, message: 'Say two', author: { email: user.email } }],
    });
    expect(await get('branches')).toMatchObject({
      data: [
        { name: 'try', commit: body.commit, isCurrent: true },
        { name: 'origin/main', isRemote: true },
      ],
    });
    expect(await get('status')).toMatchObject({ changes: [{ path: 'n.txt' }] });
    expect(await commitAs('The rest')).toMatchObject({ status: 200 });
    expect(await commitAs('Nothing')).toMatchObject({ status: 409, code: 'GIT_NOTHING_TO_COMMIT' });
    // None of that was in the repository's own tree, and a draft belongs to one repository.
    expect(await tree.status()).toMatchObject({ status: 409, code: 'GIT_TREE_MISSING' });
    const other = remoteRepository(product.server);
    const { id: elsewhere } = (await git.clone({ url: other.url, name: 'elsewhere' })).body;
    await git.cloned(elsewhere);
    const lookFrom = (itemId: string) => git.send('GET', `/git/${itemId}/status?draftId=${draft.id}`);
    expect([(await lookFrom(id)).status, (await lookFrom(elsewhere)).status]).toEqual([200, 404]);
    const commitFrom = await treeOf(git, elsewhere).post('commit', { message: 'No', draftId: draft.id });
    expect(commitFrom.status).toBe(404);
  }, 240_000);

  test('A draft is refused by its name, by the limit, and without a computer, and leaves nothing then', async () => {
    const { user, make, made, list, computer, git, drafts } = await cloned();
    for (const branch of ['a..b', 'refs/heads/x', '-x']) {
      expect(await make(branch)).toMatchObject({ status: 422, code: 'GIT_BRANCH_NAME_REFUSED' });
    }
    expect((await make('ä'.repeat(100))).code).toBe('GIT_BRANCH_NAME_REFUSED');
    expect(await make('x', { computerId: 'cmp_1' })).toMatchObject({ status: 404 });
    // The same request twice makes one draft, also while it is being made.
    const [first, second] = await Promise.all([make('one'), make('one')]);
    expect([first.status, second.status, second.body.id]).toEqual([200, 200, first.body.id]);
    const one = await made('one');
    expect(one.id).toBe(first.body.id);
    await user.fetch(`${git.space}/computers`, { method: 'POST', body: {} }).then(async (other) => {
      const { id: computerId } = (await other.json()) as { id: string };
      const elsewhere = await make('one', { computerId });
      expect(elsewhere).toMatchObject({ status: 409, code: 'GIT_DRAFT_EXISTS' });
      expect(elsewhere.body.detail).toContain(one.id);
    });
    await made('two');
    expect(await make('three')).toMatchObject({ status: 409, code: 'GIT_TOO_MANY_DRAFTS' });
    expect((await git.send('DELETE', `${drafts}/${one.id}`)).status).toBe(204);
    expect(await list()).toHaveLength(1);
    await waitFor('there to be room', async () => (await make('three')).status === 200);
    expect((await computer.exec('ls drafts/*')).stdout).toBe('three\ntwo\n');
  }, 240_000);

  full.test(
    'A draft moves to the default computer when its own is deleted, with what was saved',
    async () => {
      const { user, git, computer, made, list, said, saved, merge } = await cloned();
      const other = await user.fetch(`${git.space}/computers`, { method: 'POST', body: {} });
      const { id: computerId } = (await other.json()) as { id: string };
      const draft = await made('try', { computerId });
      expect(draft).toMatchObject({ computerId });
      await computerOf(user, computerId).exec(
        `cd ${draft.treePath}; echo two > a.txt; ${commit} two; echo three > a.txt`,
      );
      await saved(draft.id);
      await user.fetch(`${git.space}/computers/${computerId}`, { method: 'DELETE' });
      const moved = await waitFor('the draft to have another place', async () =>
        (await list()).find((now) => now.computerId === computer.id),
      );
      expect(moved).toMatchObject({ id: draft.id, status: 'ready' });
      // The next request brings the files.
      expect(await merge(draft.id, { message: 'Three' })).toMatchObject({ status: 200, body: { fastForward: true } });
      expect(await said(moved, 'cat a.txt; git log --format=%s -2')).toBe('three\nThree\ntwo\n');
    },
    240_000,
  );

  full.test(
    'A discarded draft is removed with its folder and its refs, by request and with its item',
    async () => {
      const { id, user, made, merge, list, computer, git, drafts, said, saved } = await cloned();
      const draft = await made('try');
      await said(draft, 'echo two > a.txt');
      await saved(draft.id);
      expect(await keptOf(id, draft.id)).toHaveLength(2);
      expect((await git.send('DELETE', `${drafts}/${draft.id}`)).status).toBe(204);
      expect(await list()).toEqual([]);
      for (const again of [await git.send('DELETE', `${drafts}/${draft.id}`), await merge(draft.id)]) {
        expect(again.status).toBe(404);
      }
      const gone = (draftId: string) => async () =>
        (await rowsOf('SELECT id FROM git_drafts WHERE id = ?', [draftId])).length === 0;
      await waitFor('the draft to go', gone(draft.id));
      expect(await keptOf(id, draft.id)).toEqual([]);
      expect((await computer.exec('ls -A drafts/* .cache/atrium/git')).stdout.trim().split('\n')).not.toContain('try');

      const last = await made('last');
      await user.fetch(`${git.space}/drive/items/${id}?permanent=true`, { method: 'DELETE' });
      await waitFor('the draft to go with its item', gone(last.id));
      expect((await computer.exec('find drafts -type f')).stdout).toBe('');
    },
    240_000,
  );
});

if (usable.length === 0) {
  it('Skipped: no driver is available here', () => expect(usable).toEqual([]));
}
