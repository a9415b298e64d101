import { MintedTokens } from '../../../activities/git/remotes.ts';
import { createGitHosting } from '../../../integrations/gitHosting/index.ts';
import { operator } from '../../../models/audit/audit.ts';
import { connectInstallation } from '../../../models/git/installations.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { type FakeGitHub, startFakeGitHub } from '../../fakes/githubServer.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { waitFor } from '../../support/waitFor.ts';

let github: FakeGitHub;
let environment: TestEnvironment;
beforeAll(async () => {
  github = await startFakeGitHub();
  environment = await createTestEnvironment(github.environment);
});
afterAll(async () => {
  await environment.close();
  await github.stop();
});

async function installed(login: string) {
  const { database, config } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const { id, account } = github.install(login);
  const key = { spaceId: space.id, provider: 'github', installationId: String(id) };
  const facts = { account: account.login, accountId: String(account.id), status: 'active' } as const;
  const all = { gitHost: 'git.example', facts, repositories: 'all', provenBy: 'operator' } as const;
  await connectInstallation(database, { ...key, ...all }, operator);
  const tokensTo = (purpose: 'read' | 'write') =>
    new MintedTokens({ database, gitHosting: createGitHosting(config) }, purpose);
  return { key, tokensTo, tokens: tokensTo('read'), all, installation: github.installations.get(id) };
}

test('An operation uses one token, which is revoked when the operation ends', async () => {
  const { key, tokens } = await installed('acme');
  const token = await tokens.tokenFor(key, 'acme/tool.git');
  expect(await tokens.tokenFor(key, 'acme/tool')).toBe(token);
  await tokens.revoke();
  expect(github.tokens).toEqual([expect.objectContaining({ token, isRevoked: true })]);
});

test('Only a person with write access gets a token for pushing', async () => {
  const { key, tokensTo, all, installation } = await installed('pushed');
  await tokensTo('write').tokenFor(key, 'pushed/tool.git');
  expect(github.tokens.at(-1)?.permissions).toEqual({ contents: 'write', metadata: 'read' });
  // This person proved write access and loses it later.
  const person = github.person('writer');
  const repository = { id: String(installation?.repositories[0]?.id), path: 'pushed/tool', mayWrite: true };
  person.repositories.set(Number(repository.id), true);
  const provenBy = { id: String(person.id), login: person.login };
  await connectInstallation(environment.database, { ...key, ...all, repositories: [repository], provenBy }, operator);
  await tokensTo('write').tokenFor(key, 'pushed/tool.git');
  person.repositories.set(Number(repository.id), false);
  await expect(tokensTo('write').tokenFor(key, 'pushed/tool.git')).rejects.toThrow('may not do this');
  await tokensTo('read').tokenFor(key, 'pushed/tool.git');
  // This person never had write access.
  const listed = { ...key, ...all, repositories: [{ ...repository, mayWrite: false }], provenBy };
  await connectInstallation(environment.database, listed, operator);
  const made = github.tokens.length;
  await expect(tokensTo('write').tokenFor(key, 'pushed/tool.git')).rejects.toThrow('may not change this');
  expect(github.tokens).toHaveLength(made);
});

test('A token that is minted while its operation ends is revoked too', async () => {
  const { key, tokens } = await installed('late');
  const made = github.tokens.length;
  github.newTokenMs = 60_000;
  const asked = tokens.tokenFor(key, 'late/tool.git').catch((error: { code?: string }) => error.code);
  await waitFor('the token to be made', () => github.tokens.length > made);
  await tokens.revoke();
  // From now on GitHub knows the token.
  Object.assign(github.tokens.at(-1) ?? {}, { knownAt: 0 });
  expect(await asked).toBe('GIT_AUTHENTICATION_FAILED');
  expect(github.tokens.at(-1)).toMatchObject({ isRevoked: true });
});
