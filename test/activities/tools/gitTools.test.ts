import { buildChatUser } from '../../builders/chat.ts';
import { buildComputer } from '../../builders/computer.ts';
import { buildHostedGit } from '../../builders/hostedRepository.ts';
import { gitOf, remoteRepository, type TestGit } from '../../builders/repository.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { drivers } from '../../integrations/computers/drivers.ts';

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

describe.each(usable.slice(0, 1))('$name: git tools of agents', () => {
  let product: TestGit;
  beforeAll(async () => {
    product = await buildHostedGit();
  });
  afterAll(() => product.close());

  test('Agents read, branch and commit in the name of the user', async () => {
    const user = await buildChatUser(product);
    const git = gitOf(user);
    const { url, name, commit } = remoteRepository(product.server);
    const { id } = (await git.clone({ url })).body;
    const { treePath, computerId } = await git.cloned(id);
    const computer = await buildComputer(product, user);
    const repository = `/${name}`;
    const run = async (...calls: (readonly [string, unknown])[]) =>
      toolOutputs((await user.ask({ content: toolLines(calls), modelId: 'demo', mode: 'work' })).chunks);

    // A turn in mode ask wakes no computer.
    const looked = await user.ask({
      content: toolLines([['git_status', { repository }]]),
      modelId: 'demo',
      mode: 'ask',
    });
    expect(toolOutputs(looked.chunks)).toEqual([expect.stringContaining('not on its computer')]);
    expect(await run(['git_status', { repository }])).toEqual([
      expect.objectContaining({ branch: 'main', commit, changes: [], folder: treePath, computerId, drafts: [] }),
    ]);
    await computer.exec(`echo two > ${treePath}/a.txt`);
    expect(await run(['git_diff', { repository }])).toEqual([
      { diff: expect.stringContaining('+two'), truncated: false },
    ]);
    const who = await run(['computer_exec', { command: 'git var GIT_AUTHOR_IDENT; git var GIT_COMMITTER_IDENT' }]);
    expect(who).toMatchObject([{ stdout: expect.stringMatching(new RegExp(`<${user.email}>.*\n.*<${user.email}>`)) }]);
    expect(await run(['git_branch', { repository, name: 'try' }])).toEqual([
      { branch: 'try', output: "Switched to a new branch 'try'\nM\ta.txt" },
    ]);
    const { id: draftId } = (await git.send<{ id: string }>('POST', `/drive/drafts/${id}/draft`, { branch: 'draft' }))
      .body;
    const [known] = (await run(['git_status', { repository }])) as [{ drafts: { id: string; folder: string }[] }];
    expect(known.drafts).toMatchObject([{ id: draftId, branch: 'draft', status: 'ready' }]);
    await computer.exec(`echo draft > ${known.drafts[0]?.folder}/a.txt`);
    expect(await run(['git_diff', { repository, draft: draftId }])).toMatchObject([
      { diff: expect.stringContaining('+draft') },
    ]);
    expect(await run(['git_commit', { repository, draft: draftId, message: 'In the draft' }])).toMatchObject([
      { output: expect.stringContaining('[draft ') },
    ]);
    expect(await run(['git_log', { repository, draft: draftId, limit: 1 }])).toMatchObject([
      { commits: [{ message: 'In the draft' }] },
    ]);
    expect(await run(['git_status', { repository, draft: 'drf_1' }])).toEqual([expect.stringMatching(/draft/i)]);

    const [committed] = (await run(['git_commit', { repository, message: 'Two' }])) as [{ commit: string }];
    expect(committed).toMatchObject({ commit: expect.stringMatching(/^[0-9a-f]{40}$/) });
    expect(await run(['git_log', { repository, limit: 1 }])).toEqual([
      {
        commits: [
          expect.objectContaining({ id: committed.commit, author: expect.objectContaining({ email: user.email }) }),
        ],
        next: `${committed.commit}.1`,
      },
    ]);
    expect(
      await run(
        ['git_commit', { repository, message: 'Nothing' }],
        ['git_branch', { repository, name: '--all' }],
        ['git_status', { repository: '/nowhere' }],
      ),
    ).toEqual([
      expect.stringContaining('no change to commit'),
      expect.stringContaining('cannot be a branch'),
      expect.stringContaining('nothing at /nowhere'),
    ]);
  });
});

if (usable.length === 0) {
  it('Skipped because this machine has no driver', () => expect(usable).toEqual([]));
}
