import { randomUUID } from 'node:crypto';
import { buildChatUser } from '../builders/chat.ts';
import { buildComputer } from '../builders/computer.ts';
import { buildHostedGit, treeOf } from '../builders/hostedRepository.ts';
import { gitOf, remoteRepository, type TestGit } from '../builders/repository.ts';
import { drivers } from '../integrations/computers/drivers.ts';
import { waitFor } from '../support/waitFor.ts';

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

describe.each(usable.slice(0, 1))('$name: a merge of a draft', () => {
  let product: TestGit;
  beforeAll(async () => {
    product = await buildHostedGit();
  });
  afterAll(() => product.close());

  test('A merge that a kill interrupts is completed once', async () => {
    const user = await buildChatUser(product);
    const git = gitOf(user);
    const remote = remoteRepository(product.server, { 'a.txt': 'one\n' });
    const { id } = (await git.clone({ url: remote.url })).body;
    const { treePath, name } = await git.cloned(id);
    expect(await treeOf(git, id).post('checkout', {})).toMatchObject({ status: 200 });
    const drafts = `/drive/drafts/${id}`;
    const { body } = await git.send<{ id: string }>('POST', `${drafts}/draft`, { branch: 'try' });
    const computer = await buildComputer(product, user);
    const said = async (path: string, command: string) => (await computer.exec(`cd ${path}; ${command}`)).stdout;
    const draft = `drafts/${name}/try`;
    // Git waits in a filter of the draft while it looks for uncommitted changes.
    await said(
      draft,
      `git config filter.slow.clean 'touch ~/begun; while [ -e ~/hold ]; do sleep 0.1; done; cat';
       mkdir -p .git/info; echo '*.txt filter=slow' > .git/info/attributes; echo two > a.txt; touch ~/hold`,
    );
    const headers = { 'idempotency-key': randomUUID() };
    const request = { draftId: body.id, message: 'Two' };
    const lost = git.send('POST', `${drafts}/merge`, request, headers).catch(() => undefined);
    await said('.', 'while [ ! -e ~/begun ]; do sleep 0.05; done');
    await product.process.kill('SIGKILL');
    await product.restart();
    await lost;
    await said('.', 'rm ~/hold');
    const { pool } = product.environment.database;
    const ended = await waitFor(
      'the merge to end',
      async () => {
        const sql = "SELECT id, status FROM operations WHERE subject_id = ? AND kind = 'mergeDraft'";
        const [rows] = (await pool.query(sql, [id])) as unknown as [{ id: string; status: string }[]];
        expect(rows).toHaveLength(1);
        return rows[0]?.status === 'running' ? undefined : rows[0];
      },
      { timeoutMs: 150_000 },
    );
    expect(ended?.status).toBe('succeeded');
    // The claim of a request whose process was killed holds for a minute.
    await pool.query('UPDATE idempotency_keys SET claimed_at = ? WHERE object_id = ?', [new Date(0), ended?.id]);
    const again = await git.send<{ commit: string }>('POST', `${drafts}/merge`, request, headers);
    expect(again).toMatchObject({ status: 200, body: { branch: 'main', fastForward: true } });
    const look = 'git rev-list HEAD; cat a.txt; git status --porcelain; ls -d .git/*.lock .git/atrium-wip.*';
    for (const path of [treePath, draft]) {
      expect(await said(path, look)).toBe(`${again.body.commit}\n${remote.commit}\ntwo\n`);
    }
  }, 300_000);
});

if (usable.length === 0) {
  it('Skipped because this machine has no driver', () => expect(usable).toEqual([]));
}
