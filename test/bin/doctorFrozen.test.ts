import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { checkDisk } from '../../bin/support/checkDisk.ts';
import { within } from '../../bin/support/checks.ts';
import { announceOurselves } from '../../bin/support/running.ts';
import { runAtrium } from '../support/atrium.ts';
import { temporaryFolder } from '../support/folders.ts';

// `atrium doctor` with servers that do not answer or do not run.

interface Report {
  healthy: boolean;
  checks: { name: string; state: string; detail: string }[];
}

async function doctor(variables: Record<string, string>, ...args: string[]) {
  const settings = { ATRIUM_DATA_DIR: temporaryFolder(), ATRIUM_PORT: '0', ...variables };
  const { code, stdout } = await runAtrium(['doctor', '--json', ...args], settings);
  const { healthy, checks } = JSON.parse(stdout) as Report;
  return { code, healthy, checks: Object.fromEntries(checks.map(({ name, ...check }) => [name, check])) };
}

test('doctor reports frozen servers, and still makes the other checks', async () => {
  // Accepts connections and never answers.
  const frozen = createServer().listen(0, '127.0.0.1');
  await once(frozen, 'listening');
  const address = `127.0.0.1:${(frozen.address() as AddressInfo).port}`;
  // The running Atrium is frozen too.
  const dataDir = temporaryFolder();
  mkdirSync(join(dataDir, 'run'));
  const running = announceOurselves(dataDir);
  running.update({ state: 'running', apiUrl: `http://${address}` });
  const { code, checks } = await doctor(
    {
      ATRIUM_DATA_DIR: dataDir,
      ATRIUM_DATABASE_URL: `mysql://atrium@${address}/atrium`,
      ATRIUM_TEMPORAL_ADDRESS: address,
      ATRIUM_S3_ENDPOINT: `http://${address}`,
      ATRIUM_S3_ACCESS_KEY_ID: 'key',
      ATRIUM_S3_SECRET_ACCESS_KEY: 'secret',
    },
    '--timeout',
    '0.5',
  );
  running.withdraw();
  frozen.close();
  expect(code).toBe(1);
  const silent = { state: 'wrong', detail: 'no answer within 2.5 s' };
  expect(checks).toMatchObject({
    port: silent,
    database: silent,
    temporal: silent,
    storage: silent,
    Node: { state: 'ok' },
  });
});

test('a server that answers late, as on a busy machine, is reported as slow and not as wrong', async () => {
  const answer = { state: 'ok', detail: 'there' } as const;
  expect(await within(60_000, () => answer, 60_000)).toEqual(answer);
  expect(await within(60_000, () => answer, 0)).toEqual({
    state: 'slow',
    detail: expect.stringMatching(/^there; it answers, but only after .* s: the load of this machine is /),
  });
  const broken = { state: 'wrong', detail: 'broken' } as const;
  expect(await within(60_000, () => broken, 0)).toEqual(broken);
  expect(await within(1, () => new Promise(() => undefined), 0)).toMatchObject({ state: 'wrong' });
});

test('if Atrium does not run, doctor checks the configured database and reports the other parts as not running', async () => {
  const { code, healthy, checks } = await doctor({ ATRIUM_DATABASE_URL: 'mysql://atrium@127.0.0.1:1/atrium' });
  expect([code, healthy]).toEqual([1, false]);
  expect(checks.database).toEqual({ state: 'wrong', detail: expect.stringContaining('ECONNREFUSED') });
  expect(checks.parts).toEqual({ state: 'off', detail: expect.stringMatching(/^temporal, storage: not running now/) });
  expect(Object.keys(checks)).not.toContain('storage');
});

test('doctor refuses a timeout that is not a number', async () => {
  const { code, output } = await runAtrium(['doctor', '--timeout', 'soon'], { ATRIUM_DATA_DIR: temporaryFolder() });
  expect([code, output]).toEqual([1, expect.stringContaining('A number of seconds')]);
});

test('doctor reports a full disk and how much room is needed', async () => {
  const parts = (need: boolean) => ({ database: need, temporal: need, storage: need, tenantDatabase: need });
  const dataDir = `${temporaryFolder()}/not/yet`;
  expect(await checkDisk({ dataDir, need: parts(true) })).toMatchObject({ state: 'ok' });
  // The file system of /proc has no room at all.
  const full = (need: boolean) => checkDisk({ dataDir: '/proc/atrium', need: parts(need) });
  expect(await full(true)).toEqual({ state: 'wrong', detail: expect.stringContaining('which needs 512') });
  expect(await full(false)).toEqual({ state: 'wrong', detail: expect.stringContaining('which needs 64') });
});
