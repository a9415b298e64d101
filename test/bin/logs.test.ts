import { appendFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runAtrium, startAtrium } from '../support/atrium.ts';
import { temporaryFolder } from '../support/folders.ts';

// `atrium logs` with logs in the forms of Atrium and its servers.

const product = (seconds: number, msg: string, facts: Record<string, unknown> = {}, level = 30) =>
  `${JSON.stringify({ level, time: `2026-01-02T03:04:0${seconds}.000Z`, name: 'atrium', ...facts, msg })}\n`;

function installation() {
  const dataDir = temporaryFolder();
  const logs = join(dataDir, 'logs');
  mkdirSync(logs);
  mkdirSync(join(dataDir, 'computers', '.logs'), { recursive: true });
  const file = join(logs, 'atrium.log');
  writeFileSync(`${file}.1`, product(1, 'earlier'));
  writeFileSync(
    file,
    product(3, 'a request', { requestId: 'req-1' }) + product(5, 'failed', { requestId: 'req-2' }, 50),
  );
  writeFileSync(
    join(logs, 'temporal.log'),
    `${JSON.stringify({ time: '2026-01-02T03:04:04.000Z', level: 'WARN', msg: 'slow \u001b[31m' })}\n`,
  );
  writeFileSync(join(logs, 'database.log'), '2026-01-02  3:04:02 0 [Note] Starting MariaDB\nand how\n');
  writeFileSync(join(dataDir, 'computers', '.logs', 'holders.log'), '2026-01-02T03:04:06.000Z Error: broken\n');
  return { file, logs: (...args: string[]) => ['logs', ...args], settings: { ATRIUM_DATA_DIR: dataDir, TZ: 'UTC' } };
}

async function texts(...args: string[]): Promise<string[]> {
  const { logs, settings } = installation();
  const { code, stdout } = await runAtrium(logs(...args, '--json'), settings);
  expect(code).toBe(0);
  const lines = stdout.split('\n').filter((line) => line !== '');
  return lines.map((line) => (JSON.parse(line) as { text: string }).text);
}

test('all logs are merged in the order of time', async () => {
  const { logs, settings } = installation();
  const { stdout } = await runAtrium(logs(), settings);
  expect(stdout.split('\n')).toEqual([
    '2026-01-02T03:04:01.000Z info  atrium    earlier',
    '2026-01-02T03:04:02.000Z info  database  2026-01-02  3:04:02 0 [Note] Starting MariaDB',
    '2026-01-02T03:04:02.000Z info  database  and how',
    '2026-01-02T03:04:03.000Z info  atrium    a request {"requestId":"req-1"}',
    // Escape sequences in a log do not reach the terminal.
    '2026-01-02T03:04:04.000Z warn  temporal  slow \\u001b[31m',
    '2026-01-02T03:04:05.000Z error atrium    failed {"requestId":"req-2"}',
    '2026-01-02T03:04:06.000Z info  computers 2026-01-02T03:04:06.000Z Error: broken',
    '',
  ]);
});

test('lines are filtered by part, level and id, and limited in number', async () => {
  expect(await texts('temporal', 'computers')).toEqual(['slow \u001b[31m', expect.stringContaining('broken')]);
  expect(await texts('--level', 'warn')).toEqual(['slow \u001b[31m', 'failed {"requestId":"req-2"}']);
  expect(await texts('--id', 'req-1')).toEqual(['a request {"requestId":"req-1"}']);
  expect(await texts('atrium', '--lines', '1')).toEqual(['failed {"requestId":"req-2"}']);
  expect(await texts('--lines', '0')).toEqual([]);
});

test('an id that no line has is reported on standard error', async () => {
  const { logs, settings } = installation();
  const { code, stdout, output } = await runAtrium(logs('--id', 'req-9'), settings);
  expect({ code, stdout, output }).toEqual({ code: 0, stdout: '', output: 'Nothing in the logs names req-9.\n' });
});

test('--follow shows new lines, also after the log is rotated', async () => {
  const { file, logs, settings } = installation();
  const following = startAtrium(logs('atrium', '--follow'), settings);
  await following.printed(/req-2/);
  appendFileSync(file, product(6, 'the last of this file'));
  renameSync(file, `${file}.1`);
  writeFileSync(file, product(7, 'the first of the next'));
  await following.printed(/the first of the next/);
  appendFileSync(file, product(8, 'and the second'));
  await following.printed(/and the second/);
  following.child.kill('SIGINT');
  await following.exited;
  const shown = following.stdout().match(/earlier|a request|failed|the last|the first|the second/g);
  expect(shown).toEqual(['earlier', 'a request', 'failed', 'the last', 'the first', 'the second']);
});

test('a missing log is reported, with the logs that exist', async () => {
  const none = await runAtrium(['logs'], { ATRIUM_DATA_DIR: temporaryFolder() });
  expect(none).toMatchObject({ code: 1, output: expect.stringMatching(/^There are no logs in .*standard error.*\n$/) });
  const { logs, settings } = installation();
  expect(await runAtrium(logs('redis'), settings)).toMatchObject({
    code: 1,
    output: 'There is no log of redis here. There are: atrium, database, temporal, computers.\n',
  });
});
