import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { boundLog, type Service, startService } from '../../stack/services.ts';
import { temporaryFolder } from '../support/folders.ts';
import { processesWith, start, until } from '../support/processes.ts';
import { createStackContext } from '../support/stackContext.ts';

const context = createStackContext();
const started: Service[] = [];

/** Starts a service that runs a shell script. `name` shows in the list of processes. */
async function startShell(name: string, script: string): Promise<Service> {
  const service = await startService(context, {
    name,
    title: 'The test service',
    command: '/bin/sh',
    args: ['-c', script, name],
    cwd: context.dataDir,
    environment: {},
    user: undefined,
  });
  started.push(service);
  return service;
}

const logOf = (name: string) => readFileSync(join(context.dataDir, 'logs', `${name}.log`), 'utf8');
const pidFileOf = (name: string) => join(context.dataDir, 'run', `${name}.pid`);

afterAll(async () => {
  for (const service of started) await service.stop();
});

test('a stopped service gets SIGTERM and leaves no pid file', async () => {
  const service = await startShell('orderly', 'trap "echo bye; exit 0" TERM; echo ready; while :; do sleep 0.01; done');
  await until(() => logOf('orderly').includes('ready'));
  expect(existsSync(pidFileOf('orderly'))).toBe(true);
  await service.stop();
  expect(logOf('orderly')).toBe('ready\nbye\n');
  expect(existsSync(pidFileOf('orderly'))).toBe(false);
});

test('the error for a service that ended has its exit code and the last line of its log', async () => {
  const first = await startShell('failing', 'echo an error of last week; exit 1');
  await first.exited;
  const service = await startShell('failing', 'echo the disk is full; exit 3');
  await service.exited;
  expect(() => service.assertAlive()).toThrow('The test service ended with code 3: the disk is full');
});

test('a service that an earlier start left running is ended first', async () => {
  const leftover = await startShell('leftover', 'while :; do sleep 0.01; done');
  const next = await startShell('leftover', 'while :; do sleep 0.01; done');
  await leftover.exited;
  expect(() => leftover.assertAlive()).toThrow('SIGTERM');
  next.assertAlive();
});

test('an unrelated process that has the pid in an old pid file is not ended', async () => {
  const bystander = start('sleep', ['60']);
  writeFileSync(pidFileOf('recycled'), JSON.stringify({ pid: bystander.pid, startTime: 'another' }));
  await startShell('recycled', 'while :; do sleep 0.01; done');
  expect(bystander.child.exitCode).toBeNull();
  bystander.child.kill('SIGKILL');
  await bystander.exited;
});

test('kill -9 of the process that started a service ends the service', async () => {
  const folder = temporaryFolder();
  const name = `orphan-${process.pid}`;
  const script = `
    import { startService } from ${JSON.stringify(join(import.meta.dirname, '../../stack/services.ts'))};
    import { prepareDataDir } from ${JSON.stringify(join(import.meta.dirname, '../../stack/folders.ts'))};
    prepareDataDir(${JSON.stringify(folder)});
    await startService(
      { dataDir: ${JSON.stringify(folder)}, environment: process.env, signal: new AbortController().signal },
      { name: 'orphan', title: '', command: '/bin/sh', args: ['-c', 'while :; do sleep 0.01; done', '${name}'], cwd: '/', environment: {} },
    );
    console.log('started');`;
  const parent = start(process.execPath, ['--input-type=module', '-e', script]);
  await parent.printed(/started/);
  await until(() => processesWith(`done ${name}`).some((line) => line.startsWith('/bin/sh')));
  parent.child.kill('SIGKILL');
  await parent.exited;
  await until(() => processesWith(`done ${name}`).length === 0);
});

test('a log is rotated while its service runs and writes on', async () => {
  const script = 'echo much; trap "echo more" USR1; trap "exit 0" TERM; echo ready; while :; do sleep 0.01; done';
  const service = await startShell('talkative', script);
  await until(() => logOf('talkative').includes('ready'));
  const file = join(context.dataDir, 'logs', 'talkative.log');
  await boundLog(file, 1_000);
  expect(existsSync(`${file}.1`)).toBe(false);
  await boundLog(file, 5);
  expect(readFileSync(`${file}.1`, 'utf8')).toBe('much\nready\n');
  process.kill(service.pid, 'SIGUSR1');
  await until(() => logOf('talkative').includes('more'));
  expect(logOf('talkative')).toBe('more\n');
});
