import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRunning, processStamp, tryLock, waitForLock } from '../../stack/fileLock.mjs';
import { temporaryFolder } from '../support/folders.ts';
import { start } from '../support/processes.ts';

const lockModule = join(import.meta.dirname, '../../stack/fileLock.mjs');

/** The stamp of a process that has ended. */
function deadStamp() {
  const { pid } = spawnSync('true');
  return { pid, startTime: 'long ago' };
}

test('a second attempt fails and tells the owner of the lock', () => {
  const path = join(temporaryFolder(), 'lock');
  const first = tryLock(path);
  expect(tryLock(path)).toMatchObject({ owner: { pid: process.pid } });
  first.release?.();
  const second = tryLock(path);
  expect(second.release).toBeDefined();
  second.release?.();
  expect(existsSync(path)).toBe(false);
});

test.each([
  ['a dead process', deadStamp],
  ['a living process that only has the same pid', () => ({ pid: process.pid, startTime: 'another' })],
  ['nobody: the file is damaged', () => 'half a lo'],
])('a lock is taken over from %s', (_name, owner) => {
  const path = join(temporaryFolder(), 'lock');
  writeFileSync(path, JSON.stringify(owner()));
  expect(tryLock(path).release).toBeDefined();
});

test('processes that find a stale lock at the same time hold it one after another', async () => {
  const folder = temporaryFolder();
  const path = join(folder, 'lock');
  writeFileSync(path, JSON.stringify(deadStamp()));
  // The flag `wx` fails a process that holds the lock at the same time as another.
  const script = `
    import { rmSync, writeFileSync } from 'node:fs';
    import { setTimeout as sleep } from 'node:timers/promises';
    import { waitForLock } from ${JSON.stringify(lockModule)};
    const lock = await waitForLock(${JSON.stringify(path)});
    writeFileSync(${JSON.stringify(join(folder, 'inside'))}, '', { flag: 'wx' });
    await sleep(20);
    rmSync(${JSON.stringify(join(folder, 'inside'))});
    lock.release();`;
  const processes = Array.from({ length: 4 }, () => start(process.execPath, ['--input-type=module', '-e', script]));
  for (const process of processes) {
    expect({ ...(await process.exited), output: process.output() }).toEqual({ code: 0, signal: null, output: '' });
  }
});

test('a waiting process gets the lock once it is free, and can stop waiting', async () => {
  const path = join(temporaryFolder(), 'lock');
  const first = tryLock(path);
  const owners: number[] = [];
  const waiting = waitForLock(path, { onWait: (owner) => owners.push(owner.pid) });
  const givenUp = waitForLock(path, { signal: AbortSignal.abort() });
  await expect(givenUp).rejects.toThrow();
  first.release?.();
  (await waiting).release();
  expect(owners).toEqual([process.pid]);
});

test('the stamp of a killed process no longer counts as running', async () => {
  const sleeper = start('sleep', ['60']);
  const stamp = processStamp(sleeper.pid);
  expect(isRunning(stamp)).toBe(true);
  sleeper.child.kill('SIGKILL');
  await sleeper.exited;
  expect(isRunning(stamp)).toBe(false);
});
