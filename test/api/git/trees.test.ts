import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { buildChatUser } from '../../builders/chat.ts';
import { buildComputer } from '../../builders/computer.ts';
import { buildCheckedOut, buildCloned, buildHostedGit, treeOf } from '../../builders/hostedRepository.ts';
import { gitOf, remoteRepository, type TestGit } from '../../builders/repository.ts';
import { drivers } from '../../integrations/computers/drivers.ts';
import { commitFiles, gitIn } from '../../support/gitRepository.ts';
import { inFull } from '../../support/inFull.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('git');

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

describe.each(usable.slice(0, 1))('$name: the working tree of a repository', () => {
  let product: TestGit;
  beforeAll(async () => {
    product = await buildHostedGit();
  });
  afterAll(() => product.close());
  beforeEach(() => product.server.reset());

  const checkedOut = (options?: Parameters<typeof buildCheckedOut>[1]) => buildCheckedOut(product, options);

  test('Reading a tree that is not there starts and costs nothing, and a checkout brings its files', async () => {
    const { user, git, id, computer, tree, remote } = await buildCloned(product);
    const asked = ['status', 'log', 'branches', 'diff'].map((what) => tree.get(what));
    for (const answer of await Promise.all(asked)) {
      expect(answer).toMatchObject({ status: 409, code: 'GIT_TREE_MISSING' });
    }
    const { pool } = product.environment.database;
    const kinds = async () => {
      const [rows] = await pool.query('SELECT kind FROM operations WHERE space_id = ? ORDER BY id', [user.spaceId]);
      return (rows as { kind: string }[]).map(({ kind }) => kind);
    };
    expect(await kinds()).not.toContain('wakeComputer');
    expect(await kinds()).not.toContain('fillRepository');
    // A checkout brings the files, and wakes the computer for the first time.
    expect(await tree.post('checkout', {})).toMatchObject({ status: 200 });
    expect(await tree.status()).toMatchObject({ status: 200, body: { commit: remote.commit } });
    expect(await tree.post('checkout', { branch: 'main' })).toMatchObject({ status: 200 });
    expect((await git.get(id)).status).toBe('ready');
    const { data } = await computer.expect<{ data: unknown[] }>(200, 'GET', '/processes');
    expect(data).toEqual([]);
  });

  test('A tree is checked out, changed, committed, branched and pushed, and outlives its folder', async () => {
    const { user, git, remote, id, repository, computer, tree } = await checkedOut();
    expect(await tree.status()).toMatchObject({
      status: 200,
      body: { branch: 'main', commit: remote.commit, upstream: 'origin/main', changes: [], truncated: false },
    });
    await computer.exec(`cd ${repository.treePath}; echo two >> a.txt; echo new > b.txt`);
    expect((await tree.status()).body.changes).toEqual([
      { path: 'a.txt', oldPath: null, staged: null, unstaged: 'modified' },
      { path: 'b.txt', oldPath: null, staged: null, unstaged: 'untracked' },
    ]);
    expect(await tree.get('diff')).toMatchObject({ body: { text: expect.stringContaining('+two') } });

    const branch = { name: 'try', checkout: true };
    const key = { 'idempotency-key': randomUUID() };
    const made = await tree.post('branch', branch, key);
    expect([made.status, made.body]).toEqual([200, { output: "Switched to a new branch 'try'\nM\ta.txt" }]);
    expect((await tree.post('branch', branch, key)).body).toEqual(made.body);
    expect(await tree.post('branch', branch)).toMatchObject({ status: 409, code: 'GIT_BRANCH_EXISTS' });
    expect(await tree.post('branch', { name: 'origin/x' })).toMatchObject({
      status: 422,
      code: 'GIT_BRANCH_NAME_REFUSED',
    });

    const committed = await tree.post<{ commit: string; output: string }>('commit', { message: 'More' });
    expect(committed).toMatchObject({ status: 200, body: { output: expect.stringContaining('[try ') } });
    expect(await tree.post('commit', { message: 'More' })).toMatchObject({
      status: 409,
      code: 'GIT_NOTHING_TO_COMMIT',
    });
    const log = await tree.get<{ data: { id: string; author: object }[]; nextCursor: string }>('log?limit=1');
    expect(log.body.data).toMatchObject([{ id: committed.body.commit, author: { email: user.email } }]);
    expect(await tree.get(`log?limit=1&cursor=${log.body.nextCursor}`)).toMatchObject({
      body: { data: [{ id: remote.commit }], nextCursor: null },
    });

    expect(await tree.post('push', {})).toMatchObject({
      status: 200,
      body: { output: expect.stringContaining('try') },
    });
    expect(gitIn(remote.bare, 'rev-parse', 'try')).toBe(committed.body.commit);
    expect(await tree.get('branches')).toMatchObject({
      body: { data: expect.arrayContaining([expect.objectContaining({ name: 'origin/try', isRemote: true })]) },
    });
    // As after `git push -u`.
    const followed = { upstream: 'origin/try', ahead: 0, behind: 0 };
    expect((await tree.status()).body).toMatchObject(followed);
    // A slash need not be encoded.
    expect(await tree.get('log?from=origin/try&limit=1')).toMatchObject({
      body: { data: [{ id: committed.body.commit }] },
    });
    expect(await tree.get('diff?from=origin/main&to=origin/try&path=a/b.txt')).toMatchObject({ status: 200 });

    // The folder is lost: commits come back from what was saved.
    await computer.exec('rm -rf repositories');
    expect(await tree.status()).toMatchObject({ status: 409, code: 'GIT_TREE_MISSING' });
    await tree.post('checkout', {});
    expect((await tree.status()).body).toMatchObject({
      ...followed,
      ...{ branch: 'try', commit: committed.body.commit, changes: [] },
    });
    const all = await tree.get<{ data: { name: string; upstream: string | null }[] }>('branches');
    expect(all.body.data.find(({ name }) => name === 'main')?.upstream).toBe('origin/main');
    expect((await git.get(id)).status).toBe('ready');
  });

  test('A tree is read and changed while its computer sleeps, without waking the computer', async () => {
    const { computer, tree, repository } = await checkedOut();
    await computer.exec('true');
    await tree.status();
    await computer.exec(`echo asleep > ${repository.treePath}/a.txt`);
    await computer.expect(200, 'POST', '/stop');
    expect((await tree.status()).body.changes).toMatchObject([{ path: 'a.txt' }]);
    expect(await tree.post('commit', { message: 'Asleep' })).toMatchObject({ status: 200 });
    expect(await tree.post('branch', { name: 'night', checkout: true })).toMatchObject({ status: 200 });
    expect((await tree.status()).body).toMatchObject({ branch: 'night', changes: [] });
    const { data } = await computer.user.get<{ data: { id: string; status: string }[] }>(
      `/api/spaces/${computer.user.spaceId}/computers`,
    );
    expect(data).toContainEqual(expect.objectContaining({ id: computer.id, status: 'stopped' }));
  });

  test('A pull moves a tree forward, and leaves it alone where both sides have commits', async () => {
    const { computer, remote, tree, repository } = await checkedOut();
    const theirs = commitFiles(remote.bare, { 'a.txt': 'theirs\n' });
    expect(await tree.post('pull', {})).toMatchObject({
      status: 200,
      body: { output: expect.stringContaining('Fast') },
    });
    expect((await tree.status()).body).toMatchObject({ commit: theirs, behind: 0, changes: [] });
    await computer.exec(`echo ours > ${repository.treePath}/a.txt`);
    await tree.post('commit', { message: 'Ours' });
    commitFiles(remote.bare, { 'a.txt': 'theirs again\n' });
    const refused = async (what: string) => {
      const { status, code, body } = await tree.post<{ detail: string }>(what, {});
      return [status, code, body.detail];
    };
    const saying = (words: RegExp) => [409, 'GIT_CONFLICT', expect.stringMatching(words)];
    expect(await refused('push')).toEqual(saying(/^The remote has commits that are not here\. Pull them/));
    expect(await refused('pull')).toEqual(saying(/^Both sides have commits .*`git merge origin\/main`/));
    expect((await tree.status()).body).toMatchObject({ ahead: 1, changes: [] });

    // The error names the branch to merge as a shell takes it.
    await tree.post('branch', { name: "it's", checkout: true });
    await tree.post('push', { force: true });
    commitFiles(remote.bare, { 'b.txt': 'theirs\n' }, { branch: "it's" });
    await computer.exec(`echo again > ${repository.treePath}/a.txt`);
    await tree.post('commit', { message: 'Again' });
    expect(await refused('pull')).toEqual(saying(/`git merge 'origin\/it'\\''s'`/));
  });

  full.test('A pull says what to do about uncommitted changes, and about a branch that is nowhere else', async () => {
    const { computer, remote, tree, repository } = await checkedOut();
    commitFiles(remote.bare, { 'a.txt': 'theirs\n' });
    await computer.exec(`echo ours > ${repository.treePath}/a.txt`);
    expect(await tree.post('pull', {})).toMatchObject({
      status: 409,
      code: 'GIT_CONFLICT',
      body: { detail: expect.stringContaining('What is changed in a.txt would be lost. Commit it, or discard it') },
    });
    expect(await tree.post('branch', { name: 'mine', checkout: true })).toMatchObject({ status: 200 });
    for (const body of [{}, { branch: 'elsewhere' }]) {
      expect(await tree.post('pull', body)).toMatchObject({
        status: 409,
        code: 'GIT_NO_REMOTE_BRANCH',
        body: { detail: expect.stringContaining(`no branch ${body.branch ?? 'mine'}. Push it first`) },
      });
    }
    // Commits in a terminal and in commands are by the user who has started them, unless they say otherwise.
    const email = computer.user.email;
    const inTree = `cd ${repository.treePath} && `;
    await computer.exec(`${inTree}git commit -qam Ours`);
    expect((await computer.exec(`${inTree}git log -1 --format='%ae %ce'`)).stdout).toBe(`${email} ${email}\n`);
    const own = { env: { GIT_AUTHOR_NAME: 'Bot', GIT_AUTHOR_EMAIL: 'bot@example.com' } };
    await computer.exec(`${inTree}git commit -q --allow-empty -m Bot`, own);
    expect((await computer.exec(`${inTree}git log -1 --format='%an %ae %ce'`)).stdout).toBe(
      `Bot bot@example.com ${email}\n`,
    );
  });

  full.test('A checkout brings the files that a partial clone lacks', async () => {
    const { id, computer, remote, tree, repository } = await checkedOut({ filter: 'blob:none' });
    await tree.status();
    commitFiles(remote.bare, { 'a.txt': 'other\n' }, { branch: 'other' });
    commitFiles(remote.bare, { 'a.txt': 'two\n' });
    expect(await tree.post('pull', {})).toMatchObject({ status: 200 });
    expect((await computer.exec(`cat ${repository.treePath}/a.txt`)).stdout).toBe('two\n');
    expect(await tree.post('checkout', { branch: 'other' })).toMatchObject({ status: 200 });
    expect((await computer.exec(`cat ${repository.treePath}/a.txt`)).stdout).toBe('other\n');
    // Files that are there are not requested again.
    product.server.requests = [];
    expect(await tree.post('checkout', { branch: 'main' })).toMatchObject({ status: 200 });
    expect(product.server.requests).toEqual([]);

    // The machine with the mirror is lost, and so are the files: what had come was saved.
    rmSync(join(product.environment.config.git.dir, id), { recursive: true, force: true });
    await computer.exec(`rm -rf ${repository.treePath}`);
    expect(await tree.post('checkout', {})).toMatchObject({ status: 200 });
    expect(product.server.requests).toEqual([]);
    expect((await computer.exec(`cat ${repository.treePath}/a.txt`)).stdout).toBe('two\n');
    expect((await tree.status()).body.changes).toEqual([]);
  });

  test('A push with the credential goes to the origin of the clone, whatever the tree’s own settings say', async () => {
    const { server } = product;
    const secret = 'kept-from-the-sandbox';
    const user = await buildChatUser(product);
    const git = gitOf(user);
    const remote = remoteRepository(server);
    const other = remoteRepository(server);
    server.requires = `bot:${secret}`;
    const credential = { name: 'Bot', host: `localhost:${server.port}`, username: 'bot', secret };
    const { id: credentialId } = (await git.send<{ id: string }>('POST', '/git/credentials', credential)).body;
    const { id } = (await git.clone({ url: remote.url, credentialId })).body;
    const { treePath } = await git.cloned(id);
    const tree = treeOf(git, id);
    expect(await tree.post('checkout', {})).toMatchObject({ status: 200 });
    const computer = await buildComputer(product, user);
    const helper = '!f() { (env; cat) > ~/leak; }; f';
    await computer.exec(`cd ${treePath}; git config remote.origin.url ${other.url};
      git config remote.origin.pushurl ${other.url}; git config url.${other.url}.insteadOf ${remote.url};
      git config remote.origin.proxy http://127.0.0.1:1; git config http.proxy http://127.0.0.1:1;
      git config credential.helper '${helper}'; git config --global credential.helper '${helper}';
      git config core.askPass 'sh -c "env > ~/leak"'; git config core.sshCommand 'sh -c "env > ~/leak"';
      printf '#!/bin/sh\nenv > ~/leak\n' > .git/hooks/pre-push; chmod +x .git/hooks/pre-push; echo two > a.txt`);
    const { commit } = (await tree.post<{ commit: string }>('commit', { message: 'Two' })).body;
    server.requests = [];
    expect(await tree.post('push', {})).toMatchObject({ status: 200 });
    expect(await tree.post('pull', {})).toMatchObject({ status: 200 });
    expect(gitIn(remote.bare, 'rev-parse', 'main')).toBe(commit);
    expect(gitIn(other.bare, 'rev-parse', 'main')).toBe(other.commit);
    expect(server.requests.filter(({ url }) => !url.startsWith(new URL(remote.url).pathname))).toEqual([]);
    expect(server.requests.some(({ authorization }) => authorization !== undefined)).toBe(true);
    const found = await computer.exec(`ls ~/leak; grep -rl '${secret}' ~ /proc/[0-9]*/environ 2>/dev/null`);
    expect(found.stdout).toBe('');
  });

  full.test('A tree goes with its item, and leaves its place to the next one', async () => {
    const { user, git, remote, id, repository, computer, tree } = await checkedOut();
    await computer.exec(`cd ${repository.treePath}; echo two >> a.txt`);
    await computer.expect(200, 'POST', '/stop');
    expect((await user.fetch(`${git.space}/drive/items/${id}?permanent=true`, { method: 'DELETE' })).status).toBe(204);
    const { pool } = product.environment.database;
    await waitFor('the repository to go', async () => {
      const [rows] = await pool.query('SELECT item_id FROM git_repositories WHERE item_id = ?', [id]);
      return (rows as unknown[]).length === 0;
    });
    expect(await tree.status()).toMatchObject({ status: 404 });
    const again = (await git.clone({ url: remote.url })).body;
    expect(await git.cloned(again.id)).toMatchObject({ status: 'ready', treePath: repository.treePath });
    expect(await treeOf(git, again.id).post('checkout', {})).toMatchObject({ status: 200 });
    expect((await computer.exec(`cat ${repository.treePath}/a.txt; ls -A repositories`)).stdout).toBe(
      `one\n${remote.name}\n`,
    );
  });

  full.test('A tree comes to another computer when its own was deleted, with all that was saved', async () => {
    const { user, git, id, computer, tree, repository } = await checkedOut();
    await computer.exec(`echo two > ${repository.treePath}/a.txt`);
    const { commit } = (await tree.post<{ commit: string }>('commit', { message: 'Two' })).body;
    const elsewhere = await user.fetch(`${git.space}/computers`, { method: 'POST', body: { name: 'Elsewhere' } });
    const { id: other } = (await elsewhere.json()) as { id: string };
    expect(await tree.post('checkout', { computerId: other })).toMatchObject({
      status: 409,
      code: 'GIT_TREE_ELSEWHERE',
    });
    expect(await tree.post('checkout', { computerId: 'cmp_none' })).toMatchObject({ status: 404 });
    const gone = async (computerId: string) =>
      expect((await user.fetch(`${git.space}/computers/${computerId}`, { method: 'DELETE' })).status).toBeLessThan(300);

    await gone(computer.id);
    for (const what of ['status', 'log', 'branches', 'diff']) {
      expect(await tree.get(what)).toMatchObject({
        status: 409,
        code: 'GIT_TREE_MISSING',
        body: { detail: expect.stringContaining('deleted') },
      });
    }
    expect(await tree.post('checkout', { branch: 'main', computerId: other })).toMatchObject({ status: 200 });
    expect(await git.get(id)).toMatchObject({ computerId: other, treePath: repository.treePath });
    expect((await tree.status()).body).toMatchObject({ branch: 'main', commit, changes: [] });

    // Here the next request names no computer.
    await gone(other);
    expect(await tree.post('branch', { name: 'next', checkout: true })).toMatchObject({ status: 200 });
    const { id: usual } = await buildComputer(product, user);
    expect((await git.get(id)).computerId).toBe(usual);
    expect((await tree.status()).body).toMatchObject({ branch: 'next', commit, changes: [] });

    // A repository can also be deleted when no computer has its files.
    await gone(usual);
    expect((await user.fetch(`${git.space}/drive/items/${id}?permanent=true`, { method: 'DELETE' })).status).toBe(204);
    const { pool } = product.environment.database;
    await waitFor('the repository to go', async () => {
      const [rows] = await pool.query('SELECT item_id FROM git_repositories WHERE item_id = ?', [id]);
      return (rows as unknown[]).length === 0;
    });
  });

  test('A tree goes to the computer that is named when its folder was deleted', async () => {
    const { user, git, id, computer, tree, repository } = await checkedOut();
    const elsewhere = await user.fetch(`${git.space}/computers`, { method: 'POST', body: { name: 'Elsewhere' } });
    const { id: other } = (await elsewhere.json()) as { id: string };
    await computer.exec(`rm -rf ${repository.treePath}`);
    expect(await tree.post('checkout', { computerId: other })).toMatchObject({ status: 200 });
    expect((await git.get(id)).computerId).toBe(other);
    expect(await tree.status()).toMatchObject({ status: 200, body: { changes: [] } });
  });

  test('A waiting order is refused if its user may no longer change the tree', async () => {
    const { user, git, id, tree } = await checkedOut();
    const { server } = product;
    const editor = await buildChatUser(product);
    await product.identity.members.add(user.spaceId, editor.email, 'editor');
    const theirs = treeOf(gitOf({ ...editor, spaceId: user.spaceId }), id);
    let held: ServerResponse | undefined;
    server.interfere = (_, res) => {
      held = res;
      return true;
    };
    const first = tree.post('pull', {});
    await waitFor('the pull to ask the remote', () => held);
    const second = theirs.post('branch', { name: 'late', checkout: true }).catch(() => undefined);
    const { pool } = product.environment.database;
    await waitFor('both orders', async () => {
      const [rows] = await pool.query('SELECT id FROM git_orders WHERE item_id = ?', [id]);
      return (rows as unknown[]).length === 2;
    });
    expect((await user.fetch(`${git.space}/members/${editor.id}`, { method: 'DELETE' })).status).toBe(204);
    server.reset();
    held?.writeHead(503).end();
    const refused = await waitFor('the end of the second order', async () => {
      const sql = "SELECT status, error_code AS code FROM operations WHERE subject_id = ? AND kind = 'createBranch'";
      const [[row]] = (await pool.query(sql, [id])) as unknown as [{ status: string; code: string | null }[]];
      return row?.status === 'running' ? undefined : row;
    });
    expect(refused).toMatchObject({ status: 'failed', code: 'GIT_ORDER_FORBIDDEN' });
    await Promise.all([first, second]);
    expect((await tree.status()).body.branch).toBe('main');
  });

  test('Orders for a tree are carried out one after the other', async () => {
    const { tree } = await checkedOut();
    const names = Array.from({ length: 6 }, (_, index) => `b${index}`);
    const answers = await Promise.all(names.map((name) => tree.post('branch', { name, checkout: true })));
    expect(answers.map(({ status }) => status)).toEqual(names.map(() => 200));
    const { body } = await tree.get<{ data: { name: string; isRemote: boolean }[] }>('branches');
    const made = body.data.filter(({ isRemote }) => !isRemote).map(({ name }) => name);
    expect(made.toSorted()).toEqual([...names, 'main']);
  });
});

if (usable.length === 0) {
  it('Skipped: no driver is available here', () => expect(usable).toEqual([]));
}
