import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../support/folders.ts';
import { mountSmallDisk, noSmallDisk } from '../support/smallDisk.ts';
import { waitFor } from '../support/waitFor.ts';

const program = join(import.meta.dirname, '..', 'fakes', 'loggingProcess.ts');
/** At 100 KB each, these log more than the sink keeps in memory. */
const requests = 120;

async function startLogging(standardError: 'pipe' | number, args: string[] = []) {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, ...args], {
    stdio: ['ignore', 'pipe', standardError],
  });
  const [port] = (await once(child.stdout as NonNullable<typeof child.stdout>, 'data')) as [Buffer];
  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${String(port).trim()}${path}`)).text();
  return {
    child,
    ask,
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      // A process that is blocked by its log would not end.
      expect(await ended).toEqual([0, null]);
    },
  };
}

type Line = { count?: number; lostLines?: number; text?: string };
const linesOf = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);

it('a process answers while its standard error is not read, and later logs how many lines it dropped', async () => {
  await using logging = await startLogging('pipe');
  const { child, ask } = logging;
  for (let request = 0; request < requests; request++) expect(await ask('/')).toBe('ok');
  const lost = Number(await ask('/lost'));
  expect(lost).toBeGreaterThan(0);
  let text = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  await waitFor('the line that says what was dropped', () => /"lostLines":\d+.*\n/.test(text));
  const lines = linesOf(text);
  const told = lines.reduce((sum, { lostLines = 0 }) => sum + lostLines, 0);
  expect(told).toBe(lost);
  expect(lines.filter(({ text: said }) => said !== undefined)).toHaveLength(10 * requests - lost);
});

it('a process answers when the reader of its standard error is gone', async () => {
  await using logging = await startLogging('pipe');
  logging.child.stderr?.destroy();
  for (let request = 0; request < requests; request++) expect(await logging.ask('/')).toBe('ok');
});

it('a process answers while its standard error is a file on a full disk', async () => {
  await using logging = await startLogging(openSync('/dev/full', 'w'));
  for (let request = 0; request < requests; request++) expect(await logging.ask('/')).toBe('ok');
  expect(Number(await logging.ask('/lost'))).toBeGreaterThan(0);
});

describe('a log file on a full disk', () => {
  if (noSmallDisk !== undefined) {
    process.stderr.write(`\nNOT RUN: a log on a full disk: ${noSmallDisk}\n`);
    it(`is not tested on this machine: ${noSmallDisk}`, () => expect(noSmallDisk).not.toBe(''));
    return;
  }

  it('does not delay requests, and gets whole lines once there is room again', async () => {
    using disk = mountSmallDisk(32);
    const file = join(disk.folder, 'logs', 'atrium.log');
    await using logging = await startLogging('pipe', [file]);
    const { ask } = logging;
    await ask('/');
    await waitFor('the log file', () => existsSync(file) && statSync(file).size > 0);
    disk.fill();
    for (let request = 0; request < requests; request++) expect(await ask('/')).toBe('ok');
    const lost = Number(await ask('/lost'));
    expect(lost).toBeGreaterThan(0);
    disk.clear();
    await waitFor('the line that says what was dropped', () => readFileSync(file, 'utf8').includes('"lostLines"'));
    await ask('/');
    const all = 10 * (requests + 2);
    await waitFor('the last line', () => readFileSync(file, 'utf8').includes(`"count":${all - 1},`));
    const lines = linesOf(readFileSync(file, 'utf8'));
    expect(lines.filter(({ count }) => count !== undefined)).toHaveLength(all - lost);
    expect(lines.reduce((sum, { lostLines = 0 }) => sum + lostLines, 0)).toBe(lost);
  });
});

it('the log keeps the present file and the one before it, each of at most 20 MiB', async () => {
  const file = join(temporaryFolder(), 'logs', 'atrium.log');
  await using logging = await startLogging('pipe', [file]);
  const { ask } = logging;
  for (let request = 1; request <= 500; request++) {
    await ask('/');
    // Wait for the disk.
    if (request % 20 > 0) continue;
    await waitFor('the last line', () => readFileSync(file, 'utf8').includes(`"count":${10 * request - 1},`));
  }
  expect(statSync(file).size).toBeLessThan(21 * 1_048_576);
  expect(statSync(`${file}.1`).size).toBeLessThan(21 * 1_048_576);
  expect(Number(await ask('/lost'))).toBe(0);
});

it('the last lines are in the log file when the process ends', async () => {
  const file = join(temporaryFolder(), 'atrium.log');
  {
    await using logging = await startLogging('pipe', [file]);
    await logging.ask('/');
  }
  expect(linesOf(readFileSync(file, 'utf8')).map(({ count }) => count)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});
