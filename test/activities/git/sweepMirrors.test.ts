import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { GitDeps } from '../../../activities/git/ordered.ts';
import { createGitSweeps } from '../../../activities/git/sweeps.ts';
import { lockFolder } from '../../../integrations/git/process/lock.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;
let world: MirrorsWorld;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());
beforeEach(async () => {
  world = await buildMirrors();
});
afterEach(() => world[Symbol.asyncDispose]());

function sweep(): Promise<number> {
  const { config, database } = environment;
  const git = { ...config.git, dir: world.dir };
  const logger = createLogger({ level: 'silent' });
  const deps = { config: { ...config, git }, database, logger, workflows: {}, gitMirrors: world.mirrors } as unknown;
  const { sweepMirrors } = createGitSweeps(deps as GitDeps);
  return new MockActivityEnvironment().run(sweepMirrors);
}

const folder = (name: string) => {
  const path = join(world.dir, name);
  mkdirSync(join(path, 'mirror.git'), { recursive: true });
  return path;
};

test('The sweep finds nothing before the first clone', async () => {
  expect(await sweep()).toBe(0);
});

test('A repository that is in use does not hold up the others', async () => {
  const [first, busy, last] = [folder('itm_a'), folder('itm_b'), folder('itm_c')];
  await using _lock = await lockFolder(`${busy}.lock`, new AbortController().signal);
  expect(await sweep()).toBe(2);
  expect([first, busy, last].map(existsSync)).toEqual([false, true, false]);
});

test('A repository that cannot be locked does not hold up the others, and a foreign folder stays', async () => {
  const [first, broken, last, other] = [folder('itm_a'), folder('itm_b'), folder('itm_c'), folder('other')];
  mkdirSync(`${broken}.lock`);
  writeFileSync(join(world.dir, 'itm_d'), 'a file in the place of a folder');
  expect(await sweep()).toBe(3);
  expect([first, broken, last, other].map(existsSync)).toEqual([false, true, false, true]);
  expect(existsSync(join(world.dir, 'itm_d'))).toBe(false);
});
