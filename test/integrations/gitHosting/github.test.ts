import { inspect } from 'node:util';
import type { DomainError } from '../../../base/errors.ts';
import { loadConfig } from '../../../config/index.ts';
import { createGitHub } from '../../../integrations/gitHosting/github.ts';
import { type FakeGitHub, startFakeGitHub } from '../../fakes/githubServer.ts';
import { stackEnvironment } from '../../support/environment.ts';

let github: FakeGitHub;
beforeAll(async () => {
  github = await startFakeGitHub();
});
afterAll(() => github.stop());
beforeEach(() => {
  Object.assign(github, { answerMs: 0, pageSize: 100, newTokenMs: 0 });
  // A request may time out before the fake has used its failure.
  github.failNoMore();
});

function provider(timeouts = { callMs: 30_000, proofMs: 30_000 }, changes: { clientSecret?: string } = {}) {
  const { appId, privateKey, clientId, clientSecret, address, gitHost } = {
    ...loadConfig({ ...stackEnvironment(), ...github.environment }).gitHosting.github,
    ...changes,
  };
  if (!appId || !privateKey || !clientId || !clientSecret) throw new Error('The fake gives all settings.');
  const oauth = { clientId, clientSecret, redirectUrl: 'http://localhost/git/github/callback' };
  return createGitHub({ appId, privateKey, address, gitHost, oauth, timeouts });
}

/** A user's authorization code, as GitHub returns it. */
function codeOf(at: ReturnType<typeof provider>, login: string) {
  const back = new URL(github.authorize(at.authorizeUrl('state'), github.person(login)));
  return back.searchParams.get('code') ?? '';
}

const failureOf = (work: Promise<unknown>): Promise<DomainError> =>
  work.then(
    () => Promise.reject(new Error('It has succeeded.')),
    (error: DomainError) => error,
  );

test('a request without an answer fails with GIT_HOSTING_TOO_SLOW', async () => {
  const { id } = github.install('silent');
  github.failNext('hold');
  expect(await failureOf(provider({ callMs: 200, proofMs: 30_000 }).installation(String(id)))).toMatchObject({
    code: 'GIT_HOSTING_TOO_SLOW',
  });
});

test('a request that its caller aborts fails with GIT_HOSTING_TOO_SLOW', async () => {
  const { id } = github.install('given-up');
  github.failNext('hold');
  const asked = provider().installation(String(id), AbortSignal.timeout(100));
  expect(await failureOf(asked)).toMatchObject({ code: 'GIT_HOSTING_TOO_SLOW' });
});

test("a proof with many slow pages times out, and revokes the user's token", async () => {
  const at = provider({ callMs: 30_000, proofMs: 500 });
  const person = github.person('patient');
  for (let index = 0; index < 40; index++) {
    const { repositories } = github.install(`slow-${index}`);
    for (const { id } of repositories) person.repositories.set(id, true);
  }
  const code = () => new URL(github.authorize(at.authorizeUrl('state'), person)).searchParams.get('code') ?? '';
  expect((await provider().prove(code())).installations).toHaveLength(40);
  github.answerMs = 100;
  expect(await failureOf(at.prove(code()))).toMatchObject({ code: 'GIT_HOSTING_TOO_SLOW' });
  expect([...github.userTokens]).toEqual([]);
});

test("the error for a truncated answer does not quote it, since it may contain the user's token", async () => {
  const at = provider();
  const code = codeOf(at, 'cut');
  github.failNext({ status: 200, raw: '{"access_token":"ghu_a_secret_of_a_person","token_ty' });
  const error = await failureOf(at.prove(code));
  expect(error).toMatchObject({ code: 'GIT_HOSTING_UNAVAILABLE' });
  expect([error.message, error.stack, inspect(error)].join()).not.toContain('ghu_');
});

test('a wrong client secret is reported as such, and not as a wrong code of the user', async () => {
  const at = provider(undefined, { clientSecret: 'another' });
  expect(await failureOf(at.prove(codeOf(at, 'quinn')))).toMatchObject({ code: 'GIT_HOSTING_KEY_REFUSED' });
  const right = provider();
  expect(await failureOf(right.prove('invented'))).toMatchObject({ code: 'GIT_HOSTING_CODE_REFUSED' });
});

test('a token that the user may not have or that fails is revoked', async () => {
  const { id, repositories } = github.install('acme');
  const [repository] = repositories;
  const request = { installationId: String(id), repository: { id: String(repository?.id) }, mayWrite: true };
  const reader = github.person('rita');
  reader.repositories.set(repository?.id ?? 0, false);
  const onBehalfOf = { id: String(reader.id), login: reader.login };
  const mint = (changes: object) => provider().mint({ ...request, path: 'acme/tool', onBehalfOf, ...changes });
  expect(await failureOf(mint({}))).toMatchObject({ code: 'GIT_HOSTING_REFUSED' });
  expect(await failureOf(mint({ path: 'acme/other' }))).toMatchObject({ code: 'GIT_HOSTING_NOT_FOUND' });
  // The first two requests create the token and wait until it is valid. The third one fails.
  github.failNext(undefined, undefined, { status: 500 });
  expect(await failureOf(mint({ mayWrite: false }))).toMatchObject({ code: 'GIT_HOSTING_UNAVAILABLE' });
  expect(github.tokens.map(({ isRevoked }) => isRevoked)).toEqual([true, true, true]);
  const { token, revoke } = await mint({ mayWrite: false });
  expect(github.tokens.at(-1)).toMatchObject({ token, isRevoked: false });
  await revoke();
  expect(github.tokens.at(-1)).toMatchObject({ isRevoked: true });
});
