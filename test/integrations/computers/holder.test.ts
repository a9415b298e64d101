import { temporaryFolder } from '../../support/folders.ts';
import { agentIn, type HeldComputer, heldComputer, outputOf } from '../../support/holder.ts';
import { inFull } from '../../support/inFull.ts';

const full = inFull('computers');

let computer: HeldComputer;

beforeAll(async () => {
  computer = await heldComputer(await agentIn(temporaryFolder()), { limits: { maxProcesses: 4 } });
});

afterAll(() => computer.stop());

let count = 0;
async function run(command: string | string[], more: object = {}) {
  const processId = `p${count++}`;
  await computer.client.startProcess({ processId, command, ...more });
  return outputOf(computer.client, processId);
}

describe('a process', () => {
  it('has its output and its exit code recorded', async () => {
    const ran = await run('echo out; echo err >&2; exit 3');
    expect(ran).toMatchObject({
      stdout: 'out\n',
      stderr: 'err\n',
      exit: { state: 'exited', exitCode: 3, signal: null },
    });
  });

  it('with a list as its command runs without a shell, in its folder and with its variables', async () => {
    const ran = await run(['/usr/bin/env', 'bash', '-c', 'echo "$PWD $A $0" "$1"', 'zero', '$HOME'], {
      cwd: '/tmp',
      env: { A: 'a b' },
    });
    expect(ran.stdout).toBe('/tmp a b zero $HOME\n');
  });

  it('has real pipes that /dev/stdout can open, no other descriptors, and an empty input', async () => {
    const ran = await run('echo a > /dev/stdout; echo b > /dev/stderr; cat; ls /proc/self/fd | wc -l; umask');
    expect(ran).toMatchObject({ stdout: 'a\n4\n0022\n', stderr: 'b\n' });
  });

  it('gets its initial input, and later input once although it is sent repeatedly', async () => {
    expect((await run('cat', { stdin: Buffer.from('at first').toString('base64') })).stdout).toBe('at first');
    await computer.client.startProcess({ processId: 'typed', command: 'cat', input: true });
    const send = (seq: number, text: string, eof = false) =>
      computer.client.sendInput('typed', { number: { writer: 'w', seq }, bytes: Buffer.from(text), eof });
    await send(1, 'one ');
    await Promise.all([send(2, 'two '), send(2, 'two '), send(1, 'one ')]);
    await expect(send(4, 'four')).rejects.toMatchObject({ code: 'INPUT_OUT_OF_ORDER' });
    await computer.client.sendInput('typed', { number: { writer: 'other', seq: 1 }, bytes: Buffer.from('too ') });
    await send(3, 'three', true);
    expect((await outputOf(computer.client, 'typed')).stdout).toBe('one two too three');
    await expect(send(4, 'four')).rejects.toMatchObject({ code: 'PROCESS_ENDED' });
  });

  full.it('gets an input once although many others have written since, until there are too many writers', async () => {
    const { client } = computer;
    const processId = 'writers';
    await client.startProcess({ processId, command: 'cat', input: true });
    const send = (writer: string, seq: number) =>
      client.sendInput(processId, { number: { writer, seq }, bytes: Buffer.from(`${writer} `) });
    await send('first', 1);
    for (let count = 0; count < 200; count++) {
      await client.sendInput(processId, { bytes: Buffer.from('.') });
      await send(`w${count}`, 1);
    }
    await send('first', 1);
    await send('first', 2);
    let refused: unknown;
    for (let count = 200; refused === undefined && count < 5_000; count++) {
      refused = await send(`w${count}`, 1).catch((error: unknown) => error);
    }
    expect(refused).toMatchObject({ kind: 'conflict', code: 'TOO_MANY_WRITERS' });
    await send('first', 2);
    await send('first', 3);
    await client.sendInput(processId, { eof: true });
    const { stdout } = await outputOf(client, processId);
    expect(stdout.match(/first/g)).toHaveLength(3);
    expect(stdout.match(/\./g)).toHaveLength(200);
  });

  it('starts once for its id, and another command with the same id is refused', async () => {
    const start = (command: string) => computer.client.startProcess({ processId: 'once', command });
    const command = 'echo x >> once.txt; sleep 0.1; wc -l < once.txt';
    const started = await Promise.all([start(command), start(command), start(command)]);
    expect(started.map(({ isNew }) => isNew).toSorted()).toEqual([false, false, true]);
    await expect(start('true')).rejects.toMatchObject({ code: 'PROCESS_ID_TAKEN' });
    expect((await outputOf(computer.client, 'once')).stdout).toBe('1\n');
    expect((await start(command)).process).toMatchObject({ state: 'exited' });
    expect((await outputOf(computer.client, 'once')).stdout).toBe('1\n');
  });

  it('ends with its leader, although a child holds its output open', async () => {
    const ran = await run('(sleep 1; echo late; sleep 1000) & echo started');
    expect(ran).toMatchObject({ stdout: 'started\n', exit: { exitCode: 0 } });
    const { processId } =
      (await computer.client.listProcesses()).find(({ command }) => String(command).includes('late')) ?? {};
    // The child that it left is still found.
    expect((await computer.client.signalProcess(String(processId), 'SIGKILL')).signalled).toBeGreaterThan(0);
    await expect(computer.client.signalProcess(String(processId), 'SIGKILL')).rejects.toMatchObject({
      code: 'PROCESS_ENDED',
    });
  });

  it('is signalled together with all its descendants, also those in other sessions and with other variables', async () => {
    await computer.client.startProcess({
      processId: 'tree',
      command:
        'setsid sleep 1001 & env -i sleep 1002 & (setsid env -i bash -c "sleep 1003; true" &) ; echo ready; wait',
    });
    for await (const { kind } of computer.client.output('tree', { follow: true })) if (kind === 'stdout') break;
    await computer.client.signalProcess('tree', 'SIGKILL');
    expect((await outputOf(computer.client, 'tree')).exit).toMatchObject({
      state: 'killed',
      signal: 'SIGKILL',
      killedBy: null,
    });
    const left = (await run('grep -l sleep /proc/[0-9]*/comm | wc -l; cat /proc/[0-9]*/cmdline | tr "\\0" " "')).stdout;
    expect(left).not.toMatch(/sleep 100[12]/);
  });

  it('is killed with its descendants after its timeout, and the reason is recorded', async () => {
    const ran = await run('sleep 1004 & sleep 1005', { timeoutMs: 300 });
    expect(ran.exit).toMatchObject({ state: 'killed', killedBy: 'timeout' });
  });

  it('does not time out while its computer is paused', async () => {
    const { client } = computer;
    const processId = 'still';
    await client.startProcess({ processId, command: 'read x; echo "got $x"', input: true, timeoutMs: 2_000 });
    await client.setPaused(true);
    await client.startProcess({ processId: 'clock', command: 'sleep 2.5' });
    await outputOf(client, 'clock');
    expect(await client.process(processId)).toMatchObject({ state: 'running' });
    await client.setPaused(false);
    expect((await outputOf(client, processId)).exit).toMatchObject({ killedBy: 'timeout' });
  });

  it.each([
    ['COMMAND_NOT_FOUND', { command: ['no-such-program'] }],
    ['COMMAND_NOT_FOUND', { command: ['no-such-program'], pty: { cols: 80, rows: 24 } }],
    ['CWD_NOT_FOUND', { command: 'true', cwd: 'no/such' }],
    ['COMMAND_NOT_STARTED', { command: ['/usr'] }],
    ['COMMAND_INVALID', { command: [] }],
    ['COMMAND_TOO_LONG', { command: 'a'.repeat(200_000) }],
    ['PROCESS_ID_INVALID', { command: 'true', processId: '../x' }],
  ])('is refused with %s, and its id stays free', async (code, request) => {
    const processId = 'refused';
    await expect(computer.client.startProcess({ processId, ...request })).rejects.toMatchObject({ code });
    await expect(computer.client.process(processId)).rejects.toMatchObject({ code: 'PROCESS_NOT_FOUND' });
  });

  it('is refused above the limit of processes', async () => {
    const ids = ['many1', 'many2', 'many3', 'many4'];
    for (const processId of ids) await computer.client.startProcess({ processId, command: 'sleep 1006' });
    const more = computer.client.startProcess({ processId: 'many5', command: 'true' });
    await expect(more).rejects.toMatchObject({ code: 'TOO_MANY_PROCESSES' });
    expect((await computer.client.startProcess({ processId: 'many1', command: 'sleep 1006' })).isNew).toBe(false);
    expect((await computer.client.status()).runningProcesses).toBe(4);
    for (const processId of ids) await computer.client.signalProcess(processId, 'SIGTERM');
    for (const processId of ids)
      expect((await outputOf(computer.client, processId)).exit).toMatchObject({ signal: 'SIGTERM' });
  });
});

describe('a terminal', () => {
  it('has a size, input, and a screen from which a client can continue', async () => {
    const { client } = computer;
    const processId = 'terminal';
    await client.startProcess({
      processId,
      command: ['bash', '--norc'],
      pty: { cols: 80, rows: 24 },
      env: { PS1: '$ ' },
    });
    await client.resizeProcess(processId, { cols: 100, rows: 30 });
    const type = (seq: number, text: string) =>
      client.sendInput(processId, { number: { writer: 'a', seq }, bytes: Buffer.from(text) });
    await type(1, 'tty; stty size; printf "\\033[31mröt\\033[0m\\n"\r');
    let seen = '';
    for await (const { kind, payload } of client.output(processId, { follow: true })) {
      if (kind === 'pty') seen += Buffer.from(payload).toString();
      if (seen.includes('\u001b[31mröt')) break;
    }
    expect(seen).toContain('30 100');
    const screen = await client.screen(processId);
    expect(screen).toMatchObject({ cols: 100, rows: 30 });
    expect(screen.data).toContain('30 100');
    await type(2, 'exit 5\r');
    const rest = await outputOf(client, processId, { after: screen.position });
    expect(rest.exit).toMatchObject({ exitCode: 5 });
    expect(rest.pty).not.toContain('30 100');
    await expect(client.screen('once')).rejects.toMatchObject({ code: 'NO_TERMINAL' });
  });
});
