import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { run, type SpawnerNews, spawner } from '../../../integrations/computers/spawner/spawner.ts';
import { feed, openProgram, outputOf } from '../../../integrations/computers/spawner/streams.ts';
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

describe('a program with a stream', () => {
  const { signal } = new AbortController();
  const shell = (script: string, given = signal) => openProgram('sh', ['-c', script], { signal: given });

  async function* inputOf(chunks: number): AsyncGenerator<Buffer> {
    for (let n = 0; n < chunks; n++) yield Buffer.alloc(10_000, String(n % 10));
  }

  async function* endless(): AsyncGenerator<Buffer> {
    for (;;) yield Buffer.alloc(65_536);
  }

  /** Starts a program that waits, and says which process it is. */
  async function waiting(given = signal) {
    const program = await shell('echo $$; exec sleep 60', given);
    const [line] = (await program.stream.iterator({ destroyOnReturn: false }).next()).value.toString().split('\n');
    const stamp = stampOf(Number(line));
    return { program, hasEnded: () => stamp === undefined || !isAlive(stamp) };
  }

  it('hands over all of its output, also when many start at once and end at once', async () => {
    const one = async (_: unknown, n: number) => {
      const chunks: Buffer[] = [];
      for await (const chunk of outputOf(await shell(`echo ${n}; head -c 300000 /dev/zero`))) chunks.push(chunk);
      return Buffer.concat(chunks);
    };
    const outputs = await Promise.all(Array.from({ length: 30 }, one));
    expect(outputs.map((bytes) => bytes.length)).toEqual(outputs.map((_, n) => 300_000 + `${n}\n`.length));
    expect(outputs.map((bytes) => Number.parseInt(bytes.toString('latin1', 0, 3), 10))).toEqual(
      outputs.map((_, n) => n),
    );
  });

  it('gets all of its input, and ends after it', async () => {
    const file = join(folder, 'fed');
    await feed(await shell(`cat > ${file}; echo more >> ${file}`), inputOf(50));
    expect(readFileSync(file, 'latin1')).toMatch(/^0{10000}1{10000}.*9{10000}more\n$/s);
  });

  it('may close its input and output before it ends', async () => {
    const closing = 'exec 0<&- 1>&-; i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done';
    for await (const chunk of outputOf(await shell(`echo all; ${closing}`))) expect(chunk.toString()).toBe('all\n');
    await feed(await shell(`cat > /dev/null; ${closing}`), inputOf(1));
    await expect(feed(await shell(`cat > /dev/null; ${closing}; exit 5`), inputOf(1))).rejects.toThrow('(5)');
  });

  it('fails with the last line of its standard error, or with the failure of its input', async () => {
    const reading = async () => {
      for await (const _ of outputOf(await shell('echo much; echo first >&2; echo last >&2; exit 3')));
    };
    await expect(reading()).rejects.toThrow('sh failed (3): last');
    await expect(feed(await shell('echo enough >&2; exit 4'), endless())).rejects.toThrow('sh failed (4): enough');
    const broken = (async function* () {
      yield Buffer.from('part');
      throw new Error('no more');
    })();
    await expect(feed(await shell('cat'), broken)).rejects.toThrow('no more');
    await expect(openProgram('none', [], { signal }).then(({ ended }) => ended)).rejects.toThrow('none failed (127)');
  });

  it('fails with the line that gives the reason, although more lines follow', async () => {
    const { ended } = await openProgram('sh', ['-c', 'echo the reason >&2; echo more >&2; exit 3'], {
      signal,
      reason: /reason/,
    });
    await expect(ended).rejects.toThrow('sh failed (3): the reason');
  });

  it('is killed when its stream is destroyed, or when the signal aborts, also while no more input comes', async () => {
    const one = await waiting();
    one.program.stream.destroy();
    await expect(one.program.ended).rejects.toThrow('SIGKILL');
    expect(one.hasEnded()).toBe(true);

    const controller = new AbortController();
    const other = await waiting(controller.signal);
    const never = (async function* () {
      yield Buffer.from('part');
      await new Promise(() => undefined);
    })();
    const feeding = feed(other.program, never);
    controller.abort(new Error('called off'));
    await expect(feeding).rejects.toThrow('called off');
    expect(other.hasEnded()).toBe(true);
    await expect(shell('true', controller.signal)).rejects.toThrow('called off');
  });

  it('fails when the spawner is killed', async () => {
    const { program } = await waiting();
    process.kill(await spawnerPid(), 'SIGKILL');
    await expect(program.ended).rejects.toThrow('the spawner has ended');
  });
});
