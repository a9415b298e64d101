import { MockActivityEnvironment } from '@temporalio/testing';
import { createHostingSweeps } from '../../../activities/git/hostingSweeps.ts';
import type { GitDeps } from '../../../activities/git/ordered.ts';
import { createGitHosting } from '../../../integrations/gitHosting/index.ts';
import { operator } from '../../../models/audit/audit.ts';
import { listInstallations, makeDue } from '../../../models/git/installationRows.ts';
import { connectInstallation, syncInstallations } from '../../../models/git/installations.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { type FakeGitHub, startFakeGitHub } from '../../fakes/githubServer.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let github: FakeGitHub;
let environment: TestEnvironment;
beforeEach(async () => {
  github = await startFakeGitHub();
  environment = await createTestEnvironment(github.environment);
});
afterEach(async () => {
  await environment.close();
  await github.stop();
});

/** A space with `count` installations, all due. */
async function spaceWith(count: number) {
  const { database, config } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const installations = Array.from({ length: count }, (_, index) => github.install(`acme${index}`));
  for (const { id, account } of installations) {
    const facts = { account: account.login, accountId: String(account.id), status: 'active' } as const;
    const key = { spaceId: space.id, provider: 'github', installationId: String(id) };
    const all = { gitHost: 'git.example', facts, repositories: 'all', provenBy: 'operator' } as const;
    await connectInstallation(database, { ...key, ...all }, operator);
    await makeDue(database, 'github', String(id));
  }
  const deps = { database, gitHosting: createGitHosting(config), logger: createLogger({ level: 'silent' }) };
  const { sweepGitInstallations } = createHostingSweeps(deps as unknown as GitDeps);
  return {
    installations,
    sweep: () => new MockActivityEnvironment().run(sweepGitInstallations),
    list: () => listInstallations(database, space.id, 'github'),
    sync: (look: Parameters<typeof syncInstallations>[2]) =>
      syncInstallations(database, { spaceId: space.id, provider: 'github', gitHost: 'git.example' }, look),
  };
}

const minutesFromNow = (date: Date) => Math.round((date.getTime() - Date.now()) / 60_000);

test('The sweep asks the provider once about each due installation, and goes on after a failure', async () => {
  const { sweep, list, installations } = await spaceWith(4);
  Object.assign(installations[3] ?? {}, { isSuspended: true });
  github.failNext({ status: 500 });
  expect(await sweep()).toEqual({ asked: 4, failed: 1 });
  const statuses = (await list()).map(({ status }) => status);
  expect(statuses).toEqual(['active', 'active', 'active', 'suspended']);
  expect(await sweep()).toEqual({ asked: 0, failed: 0 });
});

test('The sweep stops after three failures in a row', async () => {
  const { sweep } = await spaceWith(6);
  github.failNext(...Array(6).fill({ status: 503 }));
  expect(await sweep()).toEqual({ asked: 3, failed: 3 });
});

test('The sweep stops at a 429 and asks again after the provider’s Retry-After', async () => {
  const { sweep, list } = await spaceWith(3);
  github.failNext({ status: 429, headers: { 'retry-after': '1800' } });
  expect(await sweep()).toEqual({ asked: 1, failed: 1 });
  expect(github.requests).toHaveLength(1);
  expect((await list()).map(({ dueAt }) => Math.max(0, minutesFromNow(dueAt))).sort()).toEqual([0, 0, 30]);
});

test('An older answer of the provider does not replace a newer one', async () => {
  const { sweep, list, sync, installations } = await spaceWith(1);
  const [installation] = installations;
  const facts = { account: 'acme0', accountId: String(installation?.account.id), status: 'active' } as const;
  // GitHub answers "active". Before that answer is stored, the installation is suspended and the sweeper learns of it.
  await sync(async () => {
    Object.assign(installation ?? {}, { isSuspended: true });
    await sweep();
    return facts;
  });
  expect((await list()).map(({ status }) => status)).toEqual(['suspended']);
  // Atrium cannot tell which answer is newer, so the sweep asks again.
  expect(await sweep()).toEqual({ asked: 1, failed: 0 });
  expect((await list()).map(({ status }) => status)).toEqual(['suspended']);
});
