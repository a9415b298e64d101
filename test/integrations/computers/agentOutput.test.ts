import { readdirSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { type Message, messageKind } from '../../../integrations/computers/protocol/messages.ts';
import { runWith, startAgent } from '../../support/agentProcess.ts';
import { temporaryFolder } from '../../support/folders.ts';

let agent: Awaited<ReturnType<typeof startAgent>>;
beforeAll(async () => {
  agent = await startAgent();
});
afterAll(() => agent[Symbol.asyncDispose]());

const run = (command: string | string[]) => runWith(agent.agent, command, { env: { PATH: '/usr/bin:/bin' } });
const perl = (program: string) => run(['perl', '-e', program]);
const sizes = (messages: Message[]) => messages.map(({ payload }) => payload.length);

test('a flood of tiny writes to both streams arrives in a few messages without loss, and then the end', async () => {
  const each = 20_000;
  const ran = await perl(`for (1..${each}) { syswrite(STDOUT, "a"); syswrite(STDERR, "b") }`);
  expect(ran).toMatchObject({ exitCode: 0, signal: null, stdout: 'a'.repeat(each), stderr: 'b'.repeat(each) });
  expect(ran.messages.at(-1)?.kind).toBe(messageKind.exit);
  expect(ran.messages.length).toBeLessThan(each / 20);
});

test('output is sent before the process ends, and what a background child writes after its end is dropped', async () => {
  const ran = await run('exec 3>&1; (read -t 60 < <(sleep 60) <&3; echo late) & echo now');
  expect(ran).toMatchObject({ exitCode: 0, stdout: 'now\n' });
});

test('of two writes to different streams the first one arrives first', async () => {
  const orders = await Promise.all(
    Array.from({ length: 40 }, async (_, at) => {
      const [first, second] = at % 2 === 0 ? [1, 2] : [2, 1];
      const { messages } = await run(`echo x >&${first}; echo y >&${second}`);
      return messages.slice(0, 2).map(({ payload }) => payload.toString());
    }),
  );
  expect(orders).toEqual(orders.map(() => ['x\n', 'y\n']));
});

test('large output is sent in messages of at most 32 KiB', async () => {
  const { stdout, messages } = await perl('syswrite(STDOUT, "x" x 65536) for 1..64');
  expect(stdout).toBe('x'.repeat(64 * 65_536));
  expect(Math.max(...sizes(messages))).toBe(32_768);
});

test('all that the leader has written arrives, even if a background child holds the output open', async () => {
  const { stdout } = await perl('if (fork == 0) { sleep 60; exit } syswrite(STDOUT, "y" x 50000)');
  expect(stdout).toHaveLength(50_000);
});

test('a process may open its output by name, and a script needs no first line', async () => {
  expect(await run('echo named > /dev/stdout')).toMatchObject({ stdout: 'named\n' });
  const script = 'f=$(mktemp); echo "echo ran" > $f; chmod 755 $f; exec env $f';
  expect(await run(script)).toMatchObject({ stdout: 'ran\n' });
});

test('sixty programs that start at the same time each get their own output', async () => {
  const all = await Promise.all(Array.from({ length: 60 }, (_, at) => run(`echo ${at}; echo ${at} >&2`)));
  expect(all.map(({ stdout, stderr }) => stdout + stderr)).toEqual(all.map((_, at) => `${at}\n${at}\n`));
});

test('the end of a process names any signal', async () => {
  for (const [number, signal] of [
    [9, 'SIGKILL'],
    [15, 'SIGTERM'],
    [34, 'SIG34'],
  ] as const) {
    expect(await run(`kill -${number} $$`)).toMatchObject({ exitCode: null, signal });
  }
});

// Go ends a program that gets no thread, for example beside a fork bomb.
test('an agent has all its threads from its start, whatever it does at once', async () => {
  await using busy = await startAgent(temporaryFolder());
  const threads = () => readdirSync(`/proc/${busy.pid}/task`).length;
  const before = threads();
  const write = async (at: number) => {
    const path = Buffer.from(`file${at}`).toString('base64');
    const send = (stream: Duplex) => void stream.end(Buffer.alloc(200_000));
    const { stream } = await busy.agent.open({ kind: 'file.write', path }, { deadlineMs: 60_000, send });
    stream.resume();
    await runWith(busy.agent, ['/bin/cat', `file${at}`], { cwd: `/proc/${busy.pid}/cwd` });
    await busy.agent.ask({ kind: 'signal', processId: 'prc_none', signal: 'SIGTERM' }, { deadlineMs: 60_000 });
  };
  await Promise.all(Array.from({ length: 60 }, (_, at) => write(at)));
  expect(threads()).toBeLessThan(before + 4);
});
