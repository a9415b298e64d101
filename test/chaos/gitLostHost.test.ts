import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildCheckedOut, buildHostedGit } from '../builders/hostedRepository.ts';
import type { TestGit } from '../builders/repository.ts';
import { drivers } from '../integrations/computers/drivers.ts';
import { shutDownHost } from '../support/computerPrograms.ts';
import { waitFor } from '../support/waitFor.ts';

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));
const commit = 'git -c user.name=A -c user.email=a@example.com commit -qam';

interface Draft {
  id: string;
  treePath: string;
  savedAt: string | null;
  error: unknown;
}

describe.each(usable.slice(0, 1))('$name: a machine that is lost with all its folders', () => {
  let product: TestGit;
  beforeAll(async () => {
    product = await buildHostedGit({ ATRIUM_GIT_DRAFT_SAVE_SECONDS: '2', ATRIUM_COMPUTER_HOST_BEAT_SECONDS: '1' });
  });
  afterAll(() => product.close());

  /** Loses the machine: the next process finds an empty disk and is another host. */
  async function loseMachine(): Promise<void> {
    const { computers, git } = product.environment.config;
    await product.process.kill('SIGKILL');
    await shutDownHost(computers.dir);
    for (const name of readdirSync(computers.dir)) rmSync(join(computers.dir, name), { recursive: true, force: true });
    rmSync(git.dir, { recursive: true, force: true });
    await product.restart();
  }

  test('Saved commits and the saved draft survive the loss of the machine', async () => {
    const { id, git, tree, computer, repository } = await buildCheckedOut(product);
    const said = async (path: string, command: string) => (await computer.exec(`cd ${path} && { ${command}; }`)).stdout;
    await said(repository.treePath, `git checkout -q -b side; echo side > side.txt; git add .; ${commit} side`);
    await said(repository.treePath, 'git checkout -q main; git tag v1; echo two > a.txt');
    const { body: made } = await tree.post<{ commit: string }>('commit', { message: 'Two' });

    const { body } = await git.send<{ id: string }>('POST', `/drive/drafts/${id}/draft`, { branch: 'try' });
    const find = async () => {
      const { data } = (await git.send<{ data: Draft[] }>('GET', `/drive/drafts/${id}`)).body;
      return data.find((draft) => draft.id === body.id) as Draft;
    };
    const { treePath } = await find();
    await said(treePath, `echo draft > a.txt; ${commit} draft; echo more > a.txt; mkdir n; echo n > n/n.txt`);
    const look = 'cat a.txt n/n.txt; git log --format=%s -1; git branch --show-current; git status --porcelain';
    const before = await said(treePath, look);
    // A commit made at a terminal is saved with the next change of the repository. There is none, so these commits are
    // lost.
    await said(repository.treePath, `echo three > a.txt; ${commit} three; echo four > a.txt`);
    const since = Date.now();
    // The save that ends next may have read the draft before these changes.
    for (let times = 0, seen = since; times < 2; times++) {
      seen = await waitFor('the draft to be saved', async () => {
        const at = Date.parse((await find()).savedAt ?? '');
        return at > seen ? at : undefined;
      });
    }

    await loseMachine();
    await waitFor('the host to be lost', async () => {
      const { error } = await computer.expect<{ error: { code: string } | null }>(200, 'GET', '');
      return error?.code === 'HOST_LOST';
    });
    await computer.expect(200, 'POST', '/recover', { discardHome: true });
    expect((await computer.exec('ls -d repositories')).exitCode).not.toBe(0);
    expect(await tree.status()).toMatchObject({ status: 409, code: 'GIT_TREE_MISSING' });
    // A draft comes back by itself, a repository with the next change.
    await waitFor('the draft to be back', async () => (await said(treePath, look)) === before);
    expect(await tree.post('branch', { name: 'next' })).toMatchObject({ status: 200 });
    expect(await said(repository.treePath, 'cat a.txt; git log --format=%s -1; git status --porcelain')).toBe(
      'two\nTwo\n',
    );
    const [main, next, tag, first] = (
      await said(repository.treePath, 'git rev-parse main next v1^0 main~1; git log --format=%s -1 side')
    ).split('\n');
    expect([main, next, tag]).toEqual([made.commit, made.commit, first]);
    const merged = await git.send('POST', `/drive/drafts/${id}/merge`, { draftId: body.id, message: 'More' });
    expect(merged).toMatchObject({ status: 200, body: { branch: 'main' } });
  }, 300_000);
});

if (usable.length === 0) {
  it('Skipped because this machine has no driver', () => expect(usable).toEqual([]));
}
