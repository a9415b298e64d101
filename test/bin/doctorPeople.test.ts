import { checkKms, checkMail, checkSignIn } from '../../bin/support/checkPeople.ts';
import { type Config, loadConfig } from '../../config/index.ts';
import { startIssuer, type TestIssuer, testClient } from '../fakes/issuer.ts';
import { startKms, type TestKms } from '../fakes/kms.ts';
import { startMailServer, type TestMailServer } from '../fakes/mailServer.ts';
import { stackEnvironment } from '../support/environment.ts';
import { temporaryFolder } from '../support/folders.ts';

// The checks of `atrium doctor` for sign-in, mail and KMS.

let issuer: TestIssuer;
let mailServer: TestMailServer;
let kms: TestKms;

beforeAll(async () => {
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' });
  issuer = await startIssuer('http://localhost:8080/auth/oidc/callback');
  mailServer = await startMailServer();
  kms = await startKms();
});
afterAll(async () => {
  delete process.env.AWS_ACCESS_KEY_ID;
  delete process.env.AWS_SECRET_ACCESS_KEY;
  await Promise.all([issuer.close(), mailServer.close(), kms.close()]);
});

function configWith(changes: Record<string, string> = {}): Config {
  return loadConfig({
    ...stackEnvironment(),
    ATRIUM_DATA_DIR: temporaryFolder(),
    ATRIUM_OIDC_ISSUER: issuer.url,
    ATRIUM_OIDC_CLIENT_ID: testClient.id,
    ATRIUM_OIDC_CLIENT_SECRET: testClient.secret,
    ATRIUM_SMTP_URL: mailServer.url,
    ATRIUM_SMTP_FROM: 'atrium@example.com',
    ATRIUM_KMS_KEY_ID: 'alias/atrium',
    ATRIUM_KMS_REGION: 'eu-central-1',
    ATRIUM_KMS_ENDPOINT: kms.url,
    ...changes,
  });
}

const dead = 'http://127.0.0.1:1';

test('sign-in, mail and KMS that work are ok', async () => {
  expect(await checkSignIn(configWith())).toEqual({
    state: 'ok',
    detail: `${issuer.url}; it must know the redirect http://localhost:8080/auth/oidc/callback`,
  });
  expect((await checkMail(configWith())).state).toBe('ok');
  expect(await checkKms(configWith())).toEqual({ state: 'ok', detail: 'alias/atrium wraps and unwraps' });
});

test('a service that is not configured is off', async () => {
  const config = configWith({ ATRIUM_OIDC_ISSUER: '', ATRIUM_SMTP_URL: '', ATRIUM_KMS_KEY_ID: '' });
  for (const check of [checkSignIn(config), checkMail(config), checkKms(config)]) {
    expect((await check).state).toBe('off');
  }
});

test('a service that does not answer is reported with its address', async () => {
  const signIn = await checkSignIn(configWith({ ATRIUM_OIDC_ISSUER: dead }));
  expect(signIn).toEqual({
    state: 'wrong',
    detail: expect.stringMatching(/^http:\/\/127\.0\.0\.1:1: .*(ECONNREFUSED|bad port)/),
  });
  const mail = await checkMail(configWith({ ATRIUM_SMTP_URL: 'smtp://127.0.0.1:1' }));
  expect(mail).toEqual({ state: 'wrong', detail: expect.stringMatching(/^127\.0\.0\.1:1: .*ECONNREFUSED/) });
});

test('a service that refuses Atrium is reported', async () => {
  // A server that is no issuer.
  expect((await checkSignIn(configWith({ ATRIUM_OIDC_ISSUER: kms.url }))).state).toBe('wrong');
  const login = await checkMail(configWith({ ATRIUM_SMTP_URL: mailServer.url.replace('mail%20password', 'wrong') }));
  expect(login).toEqual({ state: 'wrong', detail: expect.stringMatching(/login/i) });
  expect(login.detail).not.toContain('atrium:wrong');
  kms.failWith = 'AccessDeniedException';
  expect(await checkKms(configWith())).toEqual({ state: 'wrong', detail: expect.stringContaining('alias/atrium: ') });
});
