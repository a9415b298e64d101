import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { buildChatUser } from '../../builders/chat.ts';
import { buildHostedGit } from '../../builders/hostedRepository.ts';
import { remoteRepository, type TestGit } from '../../builders/repository.ts';
import { drivers } from '../../integrations/computers/drivers.ts';
import { gitIn } from '../../support/gitRepository.ts';

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));
const page = readFileSync(new URL('../../../docs/git.md', import.meta.url), 'utf8');

describe.each(usable.slice(0, 1))('$name: the guide', () => {
  let product: TestGit;
  beforeAll(async () => {
    product = await buildHostedGit();
  }, 90_000);
  afterAll(() => product.close());

  test('leads from a clone to a merge', async () => {
    const user = await buildChatUser(product);
    const remote = remoteRepository(product.server);
    const [, guide = ''] = /## From a clone to a merge\n(.*?)\n## /s.exec(page) ?? [];
    const commands = [...guide.matchAll(/```sh\n(.*?)```/gs)]
      .map(([, block = '']) => block)
      .join('')
      .replace('http://localhost:8080', product.url)
      .replace('https://github.com/octocat/Hello-World.git', remote.url);
    const env = { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, TOKEN: user.token, SPACE: user.spaceId };
    const { stdout } = await promisify(execFile)('bash', ['-euc', commands], { env, timeout: 100_000 });
    expect(stdout).not.toContain('"code":');
    expect(stdout).toContain('+Good morning');
    expect(gitIn(remote.bare, 'log', '--format=%s', '-2', 'greeting')).toBe('Greet politely\nGreet');
    expect(gitIn(remote.bare, 'show', 'greeting:greeting.txt')).toBe('Good morning');
  }, 120_000);
});

if (usable.length === 0) {
  it('is not run here, for there is no driver', () => expect(usable).toEqual([]));
}
