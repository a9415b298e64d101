import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { HostClient } from '../../../integrations/computers/hostClient.ts';
import { runOn, startComputer } from '../../builders/host.ts';
import { type RemoteHost, startHostProcess } from '../../builders/hostProcess.ts';

import { drivers } from './drivers.ts';

const secret = 'canary-of-a-run-4711';
/** Looks for the text in /proc of all other processes. Assembles the text, so that the program does not find itself. */
const look = `
  my $canary = join "-", "canary", "of", "a", "run", "4711"; my $found = 0;
  for my $file (glob "/proc/[0-9]*/environ /proc/[0-9]*/cmdline") {
    next if $file =~ m{^/proc/$$/};
    open(my $f, "<", $file) or next; local $/; my $text = <$f>; $found = 1 if index($text, $canary) >= 0;
  }
  print $found ? "FOUND" : "NOT FOUND";`;
/** A server whose child listens too. It prints `both` when both listen. */
const serve = `
  const http = require('node:http');
  const answer = (_, res) => res.end(String(process.env.LOADED));
  if (process.argv[1] === 'child') http.createServer(answer).listen(8081, '127.0.0.1', () => console.log('both'));
  else http.createServer(answer).listen(8080, '127.0.0.1', () =>
    require('node:child_process').spawn(process.execPath, ['-e', process.env.PROGRAM, 'child'], { stdio: 'inherit' }));`;
const get = (port: number) => ['perl', '-MIO::Socket::INET', '-e', request(port)];
const request = (port: number) =>
  `my $s = IO::Socket::INET->new("127.0.0.1:${port}") or print("CLOSED"), exit;
   print $s "GET / HTTP/1.0\\r\\n\\r\\n"; local $/; print <$s>;`;

const tested = drivers.filter(({ driver, missing }) => driver === 'bubblewrap' && missing === undefined);

describe.each(tested)('with $name', ({ options }) => {
  let remote: RemoteHost;
  let client: HostClient;
  let computerId: string;
  let count = 0;

  beforeAll(async () => {
    remote = await startHostProcess(options);
  });
  afterAll(() => remote[Symbol.asyncDispose]());
  beforeEach(async () => {
    ({ client, computerId } = await startComputer(remote.host, { env: { LOADED: 'by all', BASH_ENV: '/evil' } }));
  });
  afterEach(() => remote.host.destroy(computerId));

  /** Starts a process, and waits for its first output. */
  async function start(command: string | string[], { isPrivate = true, env = {} } = {}): Promise<string> {
    const processId = `prc_private${++count}`;
    await client.startProcess({ processId, command, isPrivate, env: { TOKEN: secret, ...env } });
    for await (const { kind } of client.output(processId, { follow: true })) if (kind !== 'gap') break;
    return processId;
  }
  const node = (program: string) => ['/opt/node', '-e', program];
  const everyway = [{}, { pty: { cols: 80, rows: 24 } }];

  it('no other process of the computer sees the variables and arguments of a private one', async () => {
    await start(['sh', '-c', `sh -c "echo ready; sleep 600; : ${secret}"; :`]);
    for (const way of everyway) {
      expect((await runOn(client, ['perl', '-e', look], way)).stdout).toMatch(/^(NOT FOUND)?$/);
    }
    expect((await runOn(client, ['perl', '-e', look])).stdout).toBe('NOT FOUND');
    // Another private process does not see them either.
    expect((await runOn(client, ['perl', '-e', look], { isPrivate: true })).stdout).toBe('NOT FOUND');
    // The program does find a process that is not private.
    await start(['sh', '-c', 'echo ready; sleep 600'], { isPrivate: false });
    expect((await runOn(client, ['perl', '-e', look])).stdout).toBe('FOUND');
  });

  it("a private process has the computer's home and network, and its own temporary files", async () => {
    await client.writeFile('given', Buffer.from('hello'));
    await runOn(client, 'echo mine > /tmp/theirs; ln -s /tmp/theirs here');
    const ran = await runOn(client, 'cat given; cat /tmp/theirs; echo left > left; id -u; ls /dev/pts', {
      isPrivate: true,
    });
    expect(ran).toMatchObject({ exitCode: 0, stdout: 'hello1000\nptmx\n' });
    expect((await runOn(client, 'cat left')).stdout).toBe('left\n');
    await start(node(serve), { env: { PROGRAM: serve, LOADED: 'itself' } });
    expect((await runOn(client, get(8080))).stdout).toMatch(/itself$/);
    const socket = await client.dialPort(8080);
    socket.write('GET / HTTP/1.0\r\n\r\n');
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 200 OK/);
    socket.destroy();
  });

  it('all descendants of a private process end with it', async () => {
    const processId = await start(node(serve), { env: { PROGRAM: serve } });
    while (!(await runOn(client, get(8081))).stdout.startsWith('HTTP'));
    await client.signalProcess(processId, 'SIGTERM');
    while ((await client.process(processId)).state === 'running');
    while ((await runOn(client, get(8081))).stdout !== 'CLOSED');
    expect(await client.process(processId)).toMatchObject({ state: 'killed', signal: 'SIGTERM' });
  });

  it('a private process ends by its timeout and with its computer', async () => {
    const late = await runOn(client, 'sleep 600', { isPrivate: true, timeoutMs: 300 });
    expect(late).toMatchObject({ state: 'killed', killedBy: 'timeout' });
    const processId = await start('echo ready; sleep 600');
    const ends: unknown[] = [];
    let stopped: Promise<unknown> | undefined;
    for await (const { kind, payload } of client.output(processId, { follow: true })) {
      // Stop the computer only once the output is being followed, since a stopped one cannot be followed.
      stopped ??= remote.host.stop(computerId);
      if (kind === 'exit') ends.push(JSON.parse(Buffer.from(payload).toString()));
    }
    expect(ends).toMatchObject([{ state: 'killed', killedBy: 'stop' }]);
    await stopped;
  });

  it('a private process is frozen while its computer is paused', async () => {
    const processId = await start('while :; do echo tick; sleep 0.01; done');
    await remote.host.pause(computerId);
    const { cpuSeconds } = await remote.host.metrics(computerId);
    const size = (await client.process(processId)).outputBytes;
    // During these calls a running process would have written more.
    for (let look = 0; look < 20; look += 1) await remote.host.inspect(computerId);
    expect((await remote.host.metrics(computerId)).cpuSeconds).toBe(cpuSeconds);
    expect((await client.process(processId)).outputBytes - size).toBeLessThan(10);
    await remote.host.resume(computerId);
    for await (const { position } of client.output(processId, { follow: true })) if (position > size + 10) break;
  });

  it("a private process does not get the computer's variables that make programs load code", async () => {
    const command = 'echo "$BASH_ENV $LOADED"';
    expect((await runOn(client, command)).stdout).toBe('/evil by all\n');
    expect((await runOn(client, command, { isPrivate: true })).stdout).toBe(' by all\n');
  });

  it.each([true, false])('a process starts only with the expected files (private: %s)', async (isPrivate) => {
    const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
    const files = { folder: 'app', sha256: { 'run.sh': sha256('echo mine'), 'sub/empty': sha256('') } };
    await client.writeFile('app/run.sh', Buffer.from('echo mine'), { parents: true });
    await client.writeFile('app/sub/empty', Buffer.from(''), { parents: true });
    await client.writeFile('app/other', Buffer.from('data'));
    const start = { processId: 'prc_expecting', isPrivate, files };
    const wrong = [
      'echo theirs > app/run.sh',
      'ln -sf /dev/zero app/run.sh',
      'rm app/run.sh; mkfifo app/run.sh',
      'rm app/run.sh; mkdir app/run.sh',
      'rmdir app/run.sh',
      'printf "echo mine" > app/run.sh; truncate -s 100G app/sub/empty',
    ];
    for (const change of wrong) {
      await runOn(client, change);
      await expect(runOn(client, 'sh app/run.sh', start)).rejects.toMatchObject({ code: 'FILES_CHANGED' });
    }
    // The id is still free.
    await runOn(client, 'truncate -s 0 app/sub/empty');
    expect(await runOn(client, 'sh app/run.sh', start)).toMatchObject({ exitCode: 0, stdout: 'mine\n' });
  });

  it('simultaneous private processes each have their own output and exit code', async () => {
    const all = await Promise.all(
      Array.from({ length: 8 }, (_, at) => runOn(client, `echo ${at}; exit ${at}`, { isPrivate: true })),
    );
    expect(all.map(({ stdout, exitCode }) => [stdout, exitCode])).toEqual(all.map((_, at) => [`${at}\n`, at]));
  });
});
