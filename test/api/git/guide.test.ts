import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { choosePort } from '../../../stack/ports.ts';
import { buildChatUser, type ChatUser } from '../../builders/chat.ts';
import { buildHostedGit } from '../../builders/hostedRepository.ts';
import { localGitServer, remoteRepository, type TestGit } from '../../builders/repository.ts';
import { drivers } from '../../integrations/computers/drivers.ts';
import { beginningOf } from '../../support/examples.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { gitIn } from '../../support/gitRepository.ts';
import { start, type TestProcess } from '../../support/processes.ts';

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));
const page = readFileSync(new URL('../../../docs/git.md', import.meta.url), 'utf8');
const PATH = `${dirname(process.execPath)}:${process.env.PATH}`;

/** The commands of a section. */
function blocksOf(title: string): string[] {
  const [, section = ''] = new RegExp(`## ${title}\n(.*?)\n## `, 's').exec(page) ?? [];
  return [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, block = '']) => block);
}

async function follow(commands: string, product: TestGit, user: ChatUser): Promise<string> {
  const env = { PATH };
  const there = `${beginningOf({ url: product.url, token: user.token })}\n${commands}`;
  const { stdout } = await promisify(execFile)('bash', ['-euc', there], { env, timeout: 100_000 });
  expect(stdout).not.toContain('"code":');
  return stdout;
}

describe.each(usable.slice(0, 1))('$name: the guide', () => {
  const home = temporaryFolder();
  const guide = blocksOf('From a clone to a merge').join('');
  let use = '';
  let own: TestProcess;
  let other: Awaited<ReturnType<typeof localGitServer>>;
  let product: TestGit;

  beforeAll(async () => {
    const port = String(await choosePort());
    const [serve = '', begin = '', ...rest] = blocksOf('A git server of your own');
    use = `export GIT_PORT=${port}\n${rest.join('')}`;
    const commands = serve.replace(/node server\.mjs &\ncd -\n$/, 'exec node server.mjs');
    own = start('bash', ['-euc', commands], { env: { PATH, HOME: home, GIT_PORT: port } });
    [other] = await Promise.all([localGitServer(), own.printed(/Ready/)]);
    const said = begin
      .replace(/\$\{GIT_PORT:-\d+\}/, port)
      .replace('$HOME', home)
      .matchAll(/(ATRIUM_\w+)=(\S+)/g);
    const settings = Object.fromEntries([...said].map(([, name = '', value = '']) => [name, value]));
    // Both servers may be reached, as the page describes it.
    const caFile = join(home, 'all.pem');
    const authorities = [settings.ATRIUM_GIT_CA_FILE, other.environment.ATRIUM_GIT_CA_FILE];
    writeFileSync(caFile, authorities.map((file) => readFileSync(file ?? '', 'utf8')).join('\n'));
    product = await buildHostedGit({
      ATRIUM_GIT_CA_FILE: caFile,
      ATRIUM_EGRESS_ALLOW_INTERNAL: `${settings.ATRIUM_EGRESS_ALLOW_INTERNAL},localhost:${other.server.port}`,
    });
  });
  afterAll(async () => {
    await product.close();
    await other.server[Symbol.asyncDispose]();
    own.child.kill();
    await own.exited;
  });

  test('The guide leads from a clone to a merge', async () => {
    const user = await buildChatUser(product);
    const remote = remoteRepository(other.server);
    const commands = guide.replace('https://github.com/octocat/Hello-World.git', remote.url);
    const stdout = await follow(commands, product, user);
    expect(stdout).toContain('+Good morning');
    expect(gitIn(remote.bare, 'log', '--format=%s', '-2', 'greeting')).toBe('Greet politely\nGreet');
    expect(gitIn(remote.bare, 'show', 'greeting:greeting.txt')).toBe('Good morning');
  });

  test('The guide leads from an empty repository on a git server of one’s own to its first commit', async () => {
    const user = await buildChatUser(product);
    await follow(use, product, user);
    const bare = join(home, 'git', 'tool.git');
    expect(gitIn(bare, 'log', '--format=%s', '--all')).toBe('Begin');
    expect(gitIn(bare, 'show', 'HEAD:README.md')).toBe('My tool');
  });
});

if (usable.length === 0) {
  it('Skipped: no driver is available here', () => expect(usable).toEqual([]));
}
