import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { requireDisk } from '../../bin/support/checkDisk.ts';
import { readyScreen } from '../../bin/support/screen.ts';
import { registerWhenServed } from '../../bin/support/temporal.ts';
import { runAtrium, startAtrium } from '../support/atrium.ts';
import { createTestEnvironment } from '../support/environment.ts';
import { temporaryFolder } from '../support/folders.ts';
import { inFull } from '../support/inFull.ts';
import { processesWith } from '../support/processes.ts';
import { mountSmallDisk, noSmallDisk } from '../support/smallDisk.ts';
import { startTcpProxy } from '../support/tcpProxy.ts';
import { waitFor } from '../support/waitFor.ts';

const full = inFull('bin');

/** `atrium up` with the whole embedded stack, in a new data directory. */
const settings = (dataDir: string) => ({ ATRIUM_DATA_DIR: dataDir, ATRIUM_PORT: '0', ATRIUM_DEMO_MODEL: 'true' });

interface Ready {
  apiUrl: string;
  email: string;
}

const readReady = (output: string) => JSON.parse(output) as Ready;

test('a start after kill -9 has lost nothing, and Ctrl-C stops it in order', async () => {
  const dataDir = temporaryFolder();
  const first = startAtrium(['up', '--json'], settings(dataDir));
  await first.printed(/"apiUrl"/);
  const added = await runAtrium(['space', 'add', 'Kept', '--json'], settings(dataDir));
  const { id } = JSON.parse(added.stdout) as { id: string };
  first.child.kill('SIGKILL');
  await first.exited;

  // Start again without any repair: the lock and pid files of the killed Atrium are still there.
  expect(existsSync(join(dataDir, 'lock'))).toBe(true);
  const second = startAtrium(['up', '--json'], settings(dataDir));
  await second.printed(/"apiUrl"/);
  const databaseLog = () => readFileSync(join(dataDir, 'logs', 'database.log'), 'utf8');
  const logged = databaseLog().length;

  const token = (await runAtrium(['token'], settings(dataDir))).stdout.trim();
  const { apiUrl } = readReady(second.stdout());
  const answer = await fetch(`${apiUrl}/api/spaces/${id}`, { headers: { authorization: `Bearer ${token}` } });
  expect(await answer.json()).toMatchObject({ id, name: 'Kept' });

  const other = await runAtrium(['up'], settings(dataDir));
  expect(other).toMatchObject({
    code: 1,
    output: expect.stringMatching(/^Atrium runs already with .*Stop that one.*\n$/),
  });

  second.child.kill('SIGINT');
  expect(await second.exited).toEqual({ code: 0, signal: null });
  expect(processesWith(dataDir)).toEqual([]);
  expect(existsSync(join(dataDir, 'lock'))).toBe(false);
  expect(databaseLog()).toContain('Shutdown complete');
  // Commands and the orderly stop take leave of the server.
  expect(databaseLog().slice(logged)).not.toContain('Aborted connection');
});

full.test.each([/MariaDB initialised/, /Object store started/, /Temporal started/])(
  'Ctrl-C during a start, after "%s", stops everything that was started',
  async (moment) => {
    const dataDir = temporaryFolder();
    const atrium = startAtrium(['up'], settings(dataDir));
    await atrium.printed(moment);
    atrium.child.kill('SIGINT');
    expect(await atrium.exited).toEqual({ code: 130, signal: null });
    expect(atrium.output()).toContain('Stopped before it was ready.');
    expect(processesWith(dataDir)).toEqual([]);
    expect(existsSync(join(dataDir, 'lock'))).toBe(false);
  },
);

test('several signals at once, as from one Ctrl-C, do not break the orderly stop', async () => {
  const dataDir = temporaryFolder();
  const atrium = startAtrium(['up'], settings(dataDir));
  await atrium.printed(/MariaDB started/);
  atrium.child.kill('SIGINT');
  atrium.child.kill('SIGINT');
  atrium.child.kill('SIGTERM');
  expect(await atrium.exited).toEqual({ code: 130, signal: null });
  expect(readFileSync(join(dataDir, 'logs', 'database.log'), 'utf8')).toContain('Shutdown complete');
});

test('a taken port is reported in one line, before anything is started', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const dataDir = temporaryFolder();
  const { code, output } = await runAtrium(['up'], { ...settings(dataDir), ATRIUM_PORT: String(port) });
  server.close();
  expect(code).toBe(1);
  expect(output).toBe(
    `Port ${port} on 127.0.0.1 is taken. Stop the program that uses it, or choose another port: ATRIUM_PORT=${port + 1} npm start\n`,
  );
  expect(existsSync(join(dataDir, 'services', 'database'))).toBe(false);
});

describe('a start on a disk that is too small', () => {
  if (noSmallDisk !== undefined) {
    process.stderr.write(`\nNOT RUN: a start on a small disk: ${noSmallDisk}\n`);
    it(`is not tested on this machine: ${noSmallDisk}`, () => expect(noSmallDisk).not.toBe(''));
    return;
  }

  it("is refused with doctor's message, before anything is started", async () => {
    using disk = mountSmallDisk(100);
    const dataDir = join(disk.folder, 'data');
    const { code, output } = await runAtrium(['up'], settings(dataDir));
    expect(code).toBe(1);
    expect(output).toMatch(/^There is too little room: (100|99) MiB free for .*, which needs 512: make room, or .*\n$/);
    expect(existsSync(join(dataDir, 'services'))).toBe(false);
  });

  it('only gets a warning if the installation exists, until almost no room is left', async () => {
    using disk = mountSmallDisk(100);
    mkdirSync(join(disk.folder, 'services', 'database'), { recursive: true });
    const lines: string[] = [];
    const need = { database: true, temporal: true, storage: true, tenantDatabase: true };
    const require = () =>
      requireDisk({ dataDir: disk.folder, need }, { isNew: false, report: (line) => lines.push(line) });
    await require();
    expect(lines).toEqual([expect.stringMatching(/^Warning: there is little room: \d+ MiB free for .* needs 512/)]);
    disk.fill();
    await expect(require()).rejects.toThrow(/^There is too little room: 0 MiB free for .*, which needs 32/);
  });
});

test('a start warns of a misspelled setting, with the right name', async () => {
  const misspelled = { ATRIUM_LOG_LEVL: 'debug', ATRIUM_DATABASE_URL: 'mysql://nobody@127.0.0.1:1/none' };
  const atrium = startAtrium(['up'], { ...settings(temporaryFolder()), ...misspelled });
  await atrium.printed(
    /^Warning: there is no setting ATRIUM_LOG_LEVL \(ATRIUM_LOG_LEVEL is meant\?\); it is ignored$/m,
  );
  atrium.child.kill('SIGKILL');
  await atrium.exited;
});

test.each(['api', 'worker'])('%s in production does not create a master key', async (role) => {
  const dataDir = temporaryFolder();
  const { code, output } = await runAtrium([role], {
    ATRIUM_DATA_DIR: dataDir,
    ATRIUM_ENV: 'production',
    ATRIUM_DATABASE_URL: 'mysql://nobody@127.0.0.1:1/none',
    ATRIUM_TEMPORAL_ADDRESS: '127.0.0.1:1',
  });
  expect(code).toBe(1);
  expect(output).toMatch(/^ATRIUM_MASTER_KEY is not set, and there is no master\.key in .*\n$/);
  expect(existsSync(join(dataDir, 'master.key'))).toBe(false);
});

test('the commands that a start prints work for this installation, also with a data directory elsewhere', () => {
  const facts = { apiUrl: 'http://127.0.0.1:8080', temporalUiUrl: undefined, logFile: '', email: 'a@b', root: '/src' };
  const command = 'npm --prefix /src run -s atrium -- token';
  const usual = readyScreen({ ...facts, dataDir: '/src/.atrium' });
  expect(usual).toContain(`\n  ${command}\n`);
  expect(usual).not.toContain('ATRIUM_DATA_DIR');
  const elsewhere = readyScreen({ ...facts, dataDir: '/srv/my data' });
  expect(elsewhere).toContain(`\n  ATRIUM_DATA_DIR='/srv/my data' ${command}\n`);
  expect(elsewhere).toContain(`Bearer $(ATRIUM_DATA_DIR='/srv/my data' ${command})`);
});

test.each([
  [{ ATRIUM_PORT: 'eighty' }, 'ATRIUM_PORT'],
  [{ ATRIUM_DATABASE_URL: 'postgres://somewhere' }, 'ATRIUM_DATABASE_URL'],
])('the wrong setting %j is reported in one line', async (variables, name) => {
  const { code, output } = await runAtrium(['up'], { ATRIUM_DATA_DIR: temporaryFolder(), ...variables });
  expect(code).toBe(1);
  expect(output.trimEnd().split('\n')).toEqual([expect.stringMatching(`^${name} is not right: .+`)]);
});

test('a database that does not answer is reported in one line', async () => {
  const { code, output } = await runAtrium(['token'], {
    ATRIUM_DATA_DIR: temporaryFolder(),
    ATRIUM_DATABASE_URL: 'mysql://nobody@127.0.0.1:1/none',
    ATRIUM_TEMPORAL_ADDRESS: '127.0.0.1:1',
  });
  expect(code).toBe(1);
  expect(output).toMatch(/^127\.0\.0\.1:1 does not answer \(ECONNREFUSED\)\. .*\n$/);
});

full.test('a start waits for a slow Temporal, and says so', async () => {
  const environment = await createTestEnvironment();
  const wire = await startTcpProxy(() => `http://${environment.config.temporal.address}`);
  wire.shut();
  const address = new URL(wire.url).host;
  const atrium = startAtrium(['up', '--json'], { ...environment.environment, ATRIUM_TEMPORAL_ADDRESS: address });
  await atrium.printed(/Temporal at .* \(namespace default\) does not serve yet \(.*\); waiting …/);
  wire.open();
  await atrium.printed(/"apiUrl"/);
  atrium.child.kill('SIGINT');
  expect(await atrium.exited).toEqual({ code: 0, signal: null });
  await wire.stop();
  await environment.close();
});

full.test('a Temporal that never serves is reported with its last error', async () => {
  const { config, close } = await createTestEnvironment();
  const wanted = (change: Partial<(typeof config)['temporal']>) =>
    registerWhenServed(
      { ...config, temporal: { ...config.temporal, ...change } },
      { report: () => undefined, signal: new AbortController().signal, timeoutMs: 1 },
    );
  await expect(wanted({ namespace: 'none-such' })).rejects.toThrow(
    /^Temporal at .* \(namespace none-such\) does not serve after .*: .*none-such/,
  );
  await expect(wanted({ address: '127.0.0.1:1' })).rejects.toThrow(/^Temporal at 127.0.0.1:1 .* does not serve after /);
  await close();
});

test('an embedded server that is killed is started again at the same address', async () => {
  const dataDir = temporaryFolder();
  const atrium = startAtrium(['up', '--json'], settings(dataDir));
  await atrium.printed(/"apiUrl"/);
  const { apiUrl } = readReady(atrium.stdout());
  const statusNow = async () =>
    JSON.parse((await runAtrium(['status', '--json'], settings(dataDir))).stdout) as {
      ready: boolean;
      parts: { name: string; pid: number; address: string }[];
      hosts: { id: string }[];
    };
  const { parts: before } = await statusNow();
  await waitFor('status to show all hosts', async () => {
    const listed = await runAtrium(['host', 'list', '--json'], settings(dataDir));
    const ids = (JSON.parse(listed.stdout) as { id: string }[]).map(({ id }) => id);
    return (await statusNow()).hosts.map(({ id }) => id).join() === ids.join();
  });
  for (const { pid } of before) process.kill(pid, 'SIGKILL');
  for (const title of ['MariaDB', 'The Temporal server', 'The object store']) {
    await atrium.printed(new RegExp(`${title} ended with SIGKILL: .*\\. It is started again in 0\\.5 s\\.`));
    await atrium.printed(new RegExp(`${title} runs again\\.`));
  }
  await waitFor('Atrium to be ready again', async () => (await fetch(`${apiUrl}/readyz`)).ok);
  const { parts } = await statusNow();
  expect(parts.map(({ name, address }) => [name, address])).toEqual(before.map(({ name, address }) => [name, address]));
  expect(parts.map(({ pid }) => pid)).not.toEqual(expect.arrayContaining(before.map(({ pid }) => pid)));
  atrium.child.kill('SIGINT');
  expect(await atrium.exited).toEqual({ code: 0, signal: null });
  expect(processesWith(dataDir)).toEqual([]);
});
