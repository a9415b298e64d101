import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { run, type SpawnerNews, spawner } from '../../../integrations/computers/spawner/spawner.ts';
import { isAlive, stampOf } from '../../../integrations/computers/system/stamps.ts';
import { waitFor } from '../../support/waitFor.ts';

const folder = mkdtempSync(join(tmpdir(), 'atrium-spawner-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Starts a program in place of a holder. `news` has the events about it. */
function hold(script: string, log = join(folder, 'log')) {
  const news: SpawnerNews[] = [];
  const args = ['-c', script];
  return { news, ...spawner().ask({ do: 'hold', file: '/bin/sh', args, log }, (each) => void news.push(each)) };
}

const pidOf = (news: SpawnerNews[]) => news.flatMap((each) => (each.news === 'started' ? [each.pid] : []))[0] ?? 0;

/** The spawner's process id, which is the parent of a program that it starts. */
const spawnerPid = async () => Number(await run('/bin/sh', ['-c', 'echo $PPID']));

describe('the spawner', () => {
  it('is another process, and does not keep its client process alive', async () => {
    const url = pathToFileURL(join(import.meta.dirname, '../../../integrations/computers/spawner/spawner.ts')).href;
    const script = `const { run } = await import('${url}');
      process.stdout.write(String(Number(await run('/bin/sh', ['-c', 'echo $PPID'])) !== process.pid));`;
    const printed = await new Promise((resolve, reject) => {
      const options = { timeout: 30_000, env: {} };
      execFile(process.execPath, ['--input-type=module', '-e', script], options, (error, stdout) =>
        error === null ? resolve(stdout) : reject(error),
      );
    });
    expect(printed).toBe('true');
  });

  it("returns a program's output, and fails with its exit code, error output, signal or ENOENT", async () => {
    await expect(run('/bin/echo', ['a', 'b'])).resolves.toBe('a b\n');
    await expect(run('/bin/sh', ['-c', 'echo no >&2; exit 3'])).rejects.toThrow('failed (3): no');
    await expect(run('/bin/none', [])).rejects.toThrow('ENOENT');
    await expect(run('/bin/sleep', ['60'], { timeoutMs: 50 })).rejects.toThrow('SIGKILL');
  });

  it('kills an aborted program, and fails with the reason once it has ended', async () => {
    const controller = new AbortController();
    const running = run('/bin/sleep', ['60'], { signal: controller.signal });
    controller.abort(new Error('called off'));
    await expect(running).rejects.toThrow('called off');
    await expect(run('/bin/true', [], { signal: controller.signal })).rejects.toThrow('called off');
  });

  it('passes lines to a holder, and its reports before its end', async () => {
    const { news, tell } = hold('read line; echo "$line 1" >&3; echo 2 >&3; echo log; exit 4');
    tell({ do: 'send', line: 'hello' });
    await waitFor('the end', () => news.some((each) => each.news === 'ended'));
    expect(news).toEqual([
      { id: expect.any(Number), news: 'started', pid: expect.any(Number) },
      expect.objectContaining({ news: 'report', line: 'hello 1' }),
      expect.objectContaining({ news: 'report', line: '2' }),
      expect.objectContaining({ news: 'ended', how: ' (code 4)' }),
    ]);
    expect(readFileSync(join(folder, 'log'), 'utf8')).toBe('log\n');
  });

  it('reports the end of a holder whose log cannot be written, and goes on', async () => {
    const pid = await spawnerPid();
    const { news } = hold('exit', join(folder, 'none', 'log'));
    await waitFor('the end', () => news.length > 0);
    expect(news).toEqual([expect.objectContaining({ news: 'ended', how: expect.stringContaining('ENOENT') })]);
    expect(await spawnerPid()).toBe(pid);
  });

  it('closes the pipes of a released holder, which goes on, and reports its end', async () => {
    const { news, tell } = hold('read line; exec sleep 60');
    await waitFor('the start', () => pidOf(news) > 0);
    tell({ do: 'letGo' });
    const stamp = stampOf(pidOf(news));
    expect(stamp && isAlive(stamp)).toBe(true);
    tell({ do: 'kill' });
    await waitFor('the end', () => news.some((each) => each.news === 'ended'));
  });

  it('ignores the signals that end a whole service', async () => {
    const pid = await spawnerPid();
    for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) process.kill(pid, signal);
    expect(await spawnerPid()).toBe(pid);
  });

  it('fails running programs and ends unreleased holders when it is killed, and is started again', async () => {
    const pid = await spawnerPid();
    const { news } = hold('read line; exit');
    const waiting = run('/bin/sleep', ['60']).catch((error: Error) => error.message);
    await waitFor('the start', () => pidOf(news) > 0);
    const holder = stampOf(pidOf(news));
    process.kill(pid, 'SIGKILL');
    await expect(waiting).resolves.toContain('has ended');
    await waitFor('the failure', () => news.at(-1)?.news === 'failed');
    await waitFor('the end of the holder', () => holder === undefined || !isAlive(holder));
    expect(await spawnerPid()).not.toBe(pid);
  });
});
