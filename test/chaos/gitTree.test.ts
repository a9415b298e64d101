import { randomUUID } from 'node:crypto';
import { buildCheckedOut, buildHostedGit } from '../builders/hostedRepository.ts';
import type { TestGit } from '../builders/repository.ts';
import { drivers } from '../integrations/computers/drivers.ts';
import { commitFiles, gitIn } from '../support/gitRepository.ts';
import { waitFor } from '../support/waitFor.ts';

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

describe.each(usable.slice(0, 1))('$name: git changes that a kill interrupts', () => {
  let product: TestGit;
  beforeAll(async () => {
    product = await buildHostedGit();
  });
  afterAll(() => product.close());
  beforeEach(() => product.server.reset());

  async function checkedOut() {
    const prepare = (bare: string) => commitFiles(bare, { 'a.txt': 'other\n' }, { branch: 'other' });
    const { remote, id, repository, computer, tree } = await buildCheckedOut(product, { prepare });
    const { treePath: path } = repository;
    const said = async (command: string) => (await computer.exec(`cd ${path}; ${command}`)).stdout;
    /** Makes git wait in a filter of the tree until `release`. */
    const hold = async (filter: 'clean' | 'smudge') => {
      await said(`git config filter.slow.${filter} 'touch ../begun; while [ -e ../hold ]; do sleep 0.1; done; cat';
        mkdir -p .git/info; echo '*.txt filter=slow' > .git/info/attributes; touch ../hold`);
      return {
        begun: () => said('while [ ! -e ../begun ]; do sleep 0.05; done'),
        release: () => said('rm ../hold'),
      };
    };
    /** The status of the operation whose answer was lost, after its end. */
    const ended = (kind: string) =>
      waitFor(
        'the operation to end',
        async () => {
          const { pool } = product.environment.database;
          const sql = 'SELECT id, status FROM operations WHERE subject_id = ? AND kind = ?';
          const [rows] = (await pool.query(sql, [id, kind])) as unknown as [{ id: string; status: string }[]];
          expect(rows).toHaveLength(1);
          if (rows[0]?.status === 'running') return undefined;
          // The claim of a request whose process was killed holds for a minute.
          await pool.query('UPDATE idempotency_keys SET claimed_at = ? WHERE object_id = ?', [
            new Date(0),
            rows[0]?.id,
          ]);
          return rows[0]?.status;
        },
        { timeoutMs: 150_000 },
      );
    return { remote, tree, said, hold, ended };
  }

  async function killed(): Promise<void> {
    await product.process.kill('SIGKILL');
    await product.restart();
  }

  test('A commit is made once, and a repeat with the same idempotency key gets its answer', async () => {
    const { tree, said, hold, remote, ended } = await checkedOut();
    const { begun, release } = await hold('clean');
    await said('echo two > a.txt');
    const key = { 'idempotency-key': randomUUID() };
    const lost = tree.post('commit', { message: 'Two' }, key).catch(() => undefined);
    await begun();
    await killed();
    await lost;
    await release();
    expect(await ended('commitChanges')).toBe('succeeded');
    const answer = await tree.post<{ commit: string }>('commit', { message: 'Two' }, key);
    expect(answer).toMatchObject({ status: 200, body: { output: expect.stringContaining('Two') } });
    expect(await said('git rev-list HEAD; git status --porcelain')).toBe(`${answer.body.commit}\n${remote.commit}\n`);
    const push = await tree.post('push', {});
    expect([push.status, gitIn(remote.bare, 'rev-parse', 'main')]).toEqual([200, answer.body.commit]);
  }, 300_000);

  test('A check-out is completed', async () => {
    const { tree, said, hold, ended } = await checkedOut();
    const { begun, release } = await hold('smudge');
    const lost = tree.post('checkout', { branch: 'other' }).catch(() => undefined);
    await begun();
    await killed();
    await lost;
    await release();
    expect(await ended('checkoutBranch')).toBe('succeeded');
    expect(await said('cat a.txt; git symbolic-ref HEAD; git status --porcelain; ls .git/*.lock')).toBe(
      'other\nrefs/heads/other\n',
    );
  }, 300_000);

  test('A push that reached the remote counts as succeeded', async () => {
    const { tree, said, remote, ended } = await checkedOut();
    await said('echo two > a.txt');
    const { commit } = (await tree.post<{ commit: string }>('commit', { message: 'Two' })).body;
    // The remote accepts the push, but its answer is lost.
    product.server.interfere = (req, res) => {
      if (req.method === 'POST' && req.url?.endsWith('/git-receive-pack')) {
        res.write = () => true;
        res.end = () => res;
      }
      return undefined;
    };
    const lost = tree.post('push', { force: true }).catch(() => undefined);
    await waitFor('the push to arrive', () => gitIn(remote.bare, 'rev-parse', 'main') === commit);
    await product.process.kill('SIGKILL');
    product.server.reset();
    await product.restart();
    await lost;
    expect(await ended('pushRepository')).toBe('succeeded');
    expect(gitIn(remote.bare, 'rev-list', 'main').split('\n')).toEqual([commit, remote.commit]);
    expect((await tree.status()).body).toMatchObject({ ahead: 0, behind: 0 });
  }, 300_000);
});

if (usable.length === 0) {
  it('Skipped because this machine has no driver', () => expect(usable).toEqual([]));
}
