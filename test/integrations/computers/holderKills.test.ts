import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { HostClient } from '../../../integrations/computers/hostClient.ts';
import { ProcessStore } from '../../../integrations/computers/processes/processStore.ts';
import { positionAfter } from '../../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../../integrations/computers/types.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { agentIn, type HeldComputer, heldComputer, outputIn, outputOf } from '../../support/holder.ts';
import { inFull } from '../../support/inFull.ts';
import { residentMiB } from '../../support/processes.ts';
import { sizeOf } from '../../support/size.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('computers');

const root = temporaryFolder();
let agent: Awaited<ReturnType<typeof agentIn>>;
const computers: HeldComputer[] = [];

async function newComputer(...[changes]: [Parameters<typeof heldComputer>[1]?]): Promise<HeldComputer> {
  const computer = await heldComputer(agent, changes);
  computers.push(computer);
  return computer;
}

beforeAll(async () => {
  agent = await agentIn(root);
});

afterAll(() => Promise.all(computers.map((computer) => computer.stop())));

const lives = (pid: number) =>
  existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

full.it(
  'a reader whose connection is cut again and again gets a long output completely, in bounded memory and disk',
  async () => {
    const { client, spec, pid } = await newComputer({ limits: { maxLogBytes: 8 * 1_048_576 } });
    // Each line has eight digits and a newline.
    const lines = Math.floor((sizeOf('OUTPUT_MB', 48, 256) * 1_048_576) / 9);
    const total = lines * 9;
    let connections = 0;
    const cutting = createServer((socket) => {
      const holder = connect(spec.socketPath);
      let left = 300_000 + connections++ * 1_000_000;
      for (const end of [socket, holder])
        end.on('error', () => undefined).on('close', () => (end === socket ? holder : socket).destroy());
      socket.pipe(holder);
      holder.on('data', (data) => {
        left -= data.length;
        if (left < 0) socket.destroy();
        else if (!socket.write(data)) {
          holder.pause();
          socket.once('drain', () => holder.resume());
        }
      });
    });
    await once(cutting.listen(`${root}/cutting.sock`), 'listening');
    const reader = new HostClient({ socketPath: `${root}/cutting.sock` });
    const first = 10_000_000;
    const expected = createHash('sha256');
    for (let line = first; line < first + lines; line++) expected.update(`${line}\n`);
    const given = createHash('sha256');
    await client.startProcess({ processId: 'much', command: `seq ${first} ${first + lines - 1}` });
    let position = 0;
    let peakMiB = 0;
    for await (const record of reader.output('much', { follow: true })) {
      expect(record.position).toBe(position);
      expect(record.kind).not.toBe('gap');
      if (record.kind === 'stdout') given.update(record.payload);
      position = positionAfter(record);
      peakMiB = Math.max(peakMiB, residentMiB(pid));
    }
    cutting.close();
    expect(position).toBe(total);
    expect(given.digest('hex')).toBe(expected.digest('hex'));
    expect(connections).toBeGreaterThan(2);
    expect(peakMiB).toBeLessThan(300);
    const folder = `${spec.processesDir}/much`;
    expect(readdirSync(folder).reduce((sum, name) => sum + statSync(`${folder}/${name}`).size, 0)).toBeLessThan(
      8.1 * 1_048_576,
    );
    expect(await client.process('much')).toMatchObject({ state: 'exited', outputBytes: total });
  },
);

it('a holder and its processes go on when the host that started it is killed', async () => {
  // Start the holder from another process, and kill that.
  const support = fileURLToPath(new URL('../../support/holder.ts', import.meta.url));
  const program = `import { heldComputer } from ${JSON.stringify(support)};
    const held = await heldComputer(${JSON.stringify(agent)});
    await held.client.startProcess({ processId: 'p', command: 'echo a >> ran; sleep 1; echo b >> ran; cat ran' });
    process.stdout.write(JSON.stringify({ socketPath: held.spec.socketPath, init: held.initPid, pid: held.pid }));`;
  const host = spawn(process.execPath, ['--no-warnings', '--input-type=module-typescript', '-e', program], {
    cwd: process.cwd(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = (await once(host.stdout, 'data')) as [Buffer];
  const { socketPath, init, pid } = JSON.parse(String(said)) as { socketPath: string; init: number; pid: number };
  host.kill('SIGKILL');
  await once(host, 'exit');
  const client = new HostClient({ socketPath });
  const again = await client.startProcess({
    processId: 'p',
    command: 'echo a >> ran; sleep 1; echo b >> ran; cat ran',
  });
  expect(again).toMatchObject({ isNew: false });
  expect(await outputOf(client, 'p')).toMatchObject({ stdout: 'a\nb\n', exit: { exitCode: 0 } });
  process.kill(init, 'SIGKILL');
  await waitFor('the holder to end with its sandbox', () => !lives(pid));
});

it('a killed holder ends its sandbox, and its processes are lost but their output stays', async () => {
  const { client, spec, pid, initPid, ended } = await newComputer();
  await client.startProcess({ processId: 'p', command: 'setsid sleep 1007 & echo told; sleep 1008' });
  for await (const { kind } of client.output('p', { follow: true })) if (kind === 'stdout') break;
  const following = outputOf(client, 'p');
  const reader = new HostClient({ socketPath: spec.socketPath, processesDir: spec.processesDir });
  const readOn = outputOf(reader, 'p');
  process.kill(pid, 'SIGKILL');
  await ended;
  await expect(following).rejects.toMatchObject({ code: 'COMPUTER_NOT_RUNNING' });
  // A reader that knows the folder of the logs continues there.
  expect(await readOn).toMatchObject({ stdout: 'told\n', exit: { state: 'lost', exitCode: null } });
  expect((await outputOf(reader, 'p', { after: 2 })).stdout).toBe('ld\n');
  expect(await reader.listProcesses()).toMatchObject([{ processId: 'p', state: 'lost' }]);
  await waitFor('the sandbox to end', () => !lives(initPid));
  const store = new ProcessStore(spec.processesDir, { maxLogBytes: 1 });
  expect(await store.info('p')).toMatchObject({ state: 'lost', outputBytes: 5 });
});

it('a holder whose sandbox ends records the ends of its processes, and followers see them', async () => {
  const { client, spec, initPid, ended, end } = await newComputer();
  await client.startProcess({ processId: 'p', command: 'echo told; sleep 1009' });
  const records: OutputRecord[] = [];
  for await (const record of client.output('p', { follow: true })) {
    records.push(record);
    if (record.kind === 'stdout') process.kill(initPid, 'SIGKILL');
  }
  expect(outputIn(records).exit).toMatchObject({ state: 'killed', killedBy: 'stop' });
  await ended;
  expect(end()).toMatchObject({ generation: 1, reason: expect.stringMatching(/^The sandbox has ended/) });
  expect(existsSync(spec.socketPath)).toBe(false);
  const store = new ProcessStore(spec.processesDir, { maxLogBytes: 1 });
  expect(await store.info('p')).toMatchObject({ state: 'killed', killedBy: 'stop', outputBytes: 5 });
});

it('a stopped holder lets processes end by themselves first, and kills the others', async () => {
  const { client, pid, ended, end } = await newComputer({
    settings: { stopGraceMs: 500, agentStartTimeoutMs: 60_000, idleTimeoutMs: 60_000 },
  });
  // The shell also handles a late signal: it loops, so the end of a killed `sleep` does not end it.
  const good = 'trap "echo bye; exit 0" TERM; echo up; while true; do sleep 0.1; done';
  await client.startProcess({ processId: 'good', command: good });
  await client.startProcess({ processId: 'bad', command: 'trap "" TERM; echo up; while true; do sleep 0.1; done' });
  for (const id of ['good', 'bad'])
    for await (const { kind } of client.output(id, { follow: true })) if (kind === 'stdout') break;
  const outputs = Promise.all([outputOf(client, 'good'), outputOf(client, 'bad')]);
  process.kill(pid, 'SIGTERM');
  await ended;
  const [polite, bad] = await outputs;
  expect(polite).toMatchObject({ stdout: 'up\nbye\n', exit: { state: 'exited', exitCode: 0, killedBy: 'stop' } });
  expect(bad.exit).toMatchObject({ state: 'killed', signal: 'SIGKILL', killedBy: 'stop' });
  expect(end()).toMatchObject({ reason: 'It was stopped.' });
});

it('a holder ends when a tenant kills its agent', async () => {
  const { client, ended } = await newComputer();
  // The agent may be killed before it has answered.
  const command = 'pkill -9 -x MainThread; kill -9 $PPID; sleep 1011';
  await client.startProcess({ processId: 'p', command }).catch(() => undefined);
  await ended;
  expect(outputIn([]).exit).toBeUndefined();
});

describe('a program in place of the agent', () => {
  const with_ = (script: string) =>
    heldComputer(
      { ...agent, command: ['/usr/bin/sh', '-c', script] },
      {
        settings: { agentStartTimeoutMs: 400, stopGraceMs: 0, idleTimeoutMs: 60_000 },
      },
    );

  it.each([
    ['floods', 'cat /dev/zero', /A frame is invalid/],
    ['says nothing', 'sleep 1012', /did not start in time/],
    ['speaks out of turn', "printf '\\0\\0\\0\\007\\002\\0\\0\\0\\001x'; sleep 1013", /no such stream/],
    ['ends', 'exit 7', /ended with code 7/],
  ])('that %s ends its computer with the reason', async (_what, script, reason) => {
    const computer = await with_(script);
    computers.push(computer);
    await computer.ended;
    expect(computer.end()?.reason).toMatch(reason);
  });

  it('does not keep callers waiting after it has ended', async () => {
    const computer = await with_('sleep 0.3; exit 1');
    computers.push(computer);
    await expect(computer.client.startProcess({ processId: 'p', command: 'true' })).rejects.toMatchObject({
      code: expect.stringMatching(/^COMPUTER_/),
    });
  });
});
