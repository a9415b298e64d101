import type { ChatUser } from '../builders/chat.ts';
import { buildComputer, buildHostingProduct, computerOf, type TestComputer } from '../builders/computer.ts';
import { driveOf, type ItemPage } from '../builders/drive.ts';
import { driveIn, drivePrograms, missingDrive, newComputer, seen } from '../builders/driveInComputers.ts';
import { environmentsOf } from '../builders/environments.ts';
import type { TestProduct } from '../builders/product.ts';
import { stackEnvironment } from '../support/environment.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';
import { waitFor } from '../support/waitFor.ts';

/** The drive in computers while what is behind it fails. What was written is in the drive in the end. */
if (missingDrive !== undefined) {
  test(`The drive in computers is not tested on this machine: ${missingDrive}`, () =>
    expect(missingDrive).not.toBe(''));
} else buildTests();

function buildTests(): void {
  let gate: TcpProxy;
  let product: TestProduct;
  let user: ChatUser;
  let computer: TestComputer;
  let drive: ReturnType<typeof driveOf>;
  beforeAll(async () => {
    gate = await startTcpProxy(() => stackEnvironment().ATRIUM_S3_ENDPOINT ?? '');
    product = await buildHostingProduct({
      ATRIUM_S3_ENDPOINT: gate.url,
      ATRIUM_S3_TIMEOUT_SECONDS: '3',
      ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
    });
  });
  afterAll(async () => {
    gate.open();
    await product.close();
    await gate.stop();
  });
  beforeEach(async () => {
    gate.open();
    user = await product.user();
    computer = await buildComputer(product, user);
    drive = driveOf(product, user);
  });

  const contents = async () => {
    const { data } = await drive.get<ItemPage>('/items?limit=200');
    const texts = data.map(async ({ id, name }) => [name, await drive.content(id)] as const);
    return Object.fromEntries(await Promise.all(texts));
  };

  async function stop(): Promise<void> {
    await user.fetch(`${computer.path}/stop`, { method: 'POST' });
    await waitFor('its stop', async () => (await computer.expect(200, 'GET', '')).status === 'stopped');
  }

  const dirOf = () => product.environment.config.computers.dir;

  test('A program goes on writing while the worker is killed and started again', async () => {
    const loop =
      'for i in $(seq 60); do echo $i > ~/drive/$i.txt && echo $i >> ~/drive/log; sleep 0.1; done; echo over';
    const { id } = await computer.expect<{ id: string }>(201, 'POST', '/processes', { command: loop });
    await waitFor('its first files', async () => (await drive.names()).length > 5);
    await product.process.kill('SIGKILL');
    await product.restart();
    await waitFor('its end', async () => {
      const { state } = await computer.expect<{ state: string }>(200, 'GET', `/processes/${id}`);
      return state !== 'running';
    });
    await driveIn(computer, ({ pendingFiles, state }) => state === 'on' && pendingFiles === 0);
    const numbers = Array.from({ length: 60 }, (_, n) => String(n + 1));
    const all = Object.fromEntries(numbers.map((n) => [`${n}.txt`, `${n}\n`]));
    expect(await contents()).toEqual({ ...all, log: `${numbers.join('\n')}\n` });
  }, 300_000);

  test('A program that mounts drives and is killed is started again, with what was not sent', async () => {
    await computer.exec('echo before > ~/drive/before.txt');
    gate.shut();
    await computer.exec('echo during > ~/drive/during.txt');
    expect(await driveIn(computer, ({ pendingFiles }) => pendingFiles > 0)).toMatchObject({ state: 'on' });
    const programs = drivePrograms(dirOf());
    expect(programs).toHaveLength(1);
    for (const pid of programs) process.kill(pid, 'SIGKILL');
    gate.open();
    await seen(computer, 'cat ~/drive/before.txt ~/drive/during.txt', /before\nduring/);
    await driveIn(computer, ({ pendingFiles, state }) => state === 'on' && pendingFiles === 0);
    await computer.exec('echo after > ~/drive/after.txt');
    expect(await contents()).toEqual({ 'before.txt': 'before\n', 'during.txt': 'during\n', 'after.txt': 'after\n' });
  }, 300_000);

  test('A lone program that appends while that program is killed again and again has one file, with every line', async () => {
    await computer.exec('touch ~/drive/log');
    const append = 'echo $i | dd of=$HOME/drive/log oflag=append conv=notrunc,fsync status=none';
    const loop = `for i in $(seq 80); do until ${append}; do sleep 0.02; done; done`;
    const { id } = await computer.expect<{ id: string }>(201, 'POST', '/processes', { command: loop });
    const linesIn = async () => ((await contents()).log ?? '').split('\n').filter((line) => line !== '');
    for (const least of [10, 30, 50]) {
      await waitFor(`${least} lines`, async () => (await linesIn()).length >= least);
      for (const pid of drivePrograms(dirOf())) process.kill(pid, 'SIGKILL');
    }
    await waitFor('its end', async () => {
      const { state } = await computer.expect<{ state: string }>(200, 'GET', `/processes/${id}`);
      return state !== 'running';
    });
    await driveIn(computer, ({ pendingFiles, state }) => state === 'on' && pendingFiles === 0);
    expect(await drive.names()).toEqual(['log']);
    // A line may be there twice: it was written, and the program was not told.
    expect([...new Set(await linesIn())]).toEqual(Array.from({ length: 80 }, (_, n) => String(n + 1)));
  }, 300_000);

  test('A computer that ends while that program is dead, or does not answer, starts again with its drive', async () => {
    await computer.exec('echo before > ~/drive/before.txt');
    for (const pid of drivePrograms(dirOf())) process.kill(pid, 'SIGKILL');
    await stop();
    await seen(computer, 'cat ~/drive/before.txt', /before/);
    for (const pid of drivePrograms(dirOf())) process.kill(pid, 'SIGSTOP');
    await computer.expect(201, 'POST', '/processes', { command: 'ls ~/drive/nothing' });
    await stop();
    for (const pid of drivePrograms(dirOf())) process.kill(pid, 'SIGKILL');
    await seen(computer, 'cat ~/drive/before.txt', /before/);
  }, 300_000);

  test('While the object store is frozen, a command ends, its file is read inside, and gets there later', async () => {
    await computer.exec('true');
    gate.freeze();
    const { exitCode, stdout } = await computer.exec('echo frozen > ~/drive/frozen.txt; cat ~/drive/frozen.txt');
    expect([exitCode, stdout]).toEqual([0, 'frozen\n']);
    const waiting = await driveIn(computer, ({ pendingFiles }) => pendingFiles > 0);
    expect(waiting).toMatchObject({ state: 'on', pendingFiles: 1 });
    gate.thaw();
    await driveIn(computer, ({ pendingFiles }) => pendingFiles === 0);
    expect(await contents()).toEqual({ 'frozen.txt': 'frozen\n' });
  }, 300_000);

  test('What is beyond the quota is refused to the program', async () => {
    const quota = await buildHostingProduct({ ATRIUM_DRIVE_QUOTA_MIB: '2' });
    try {
      const owner = await quota.user();
      const small = await buildComputer(quota, owner);
      const { stderr, exitCode } = await small.exec('head -c 3000000 /dev/zero > ~/drive/large');
      expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/No space left on device/)]);
      await small.exec('rm ~/drive/large');
      // The trash counts too.
      await driveOf(quota, owner).send('DELETE', '/trash');
      await seen(small, 'echo fits > ~/drive/fits && cat ~/drive/fits', /^fits$/m);
    } finally {
      await quota.close();
    }
  }, 300_000);

  test('A computer with an environment has the drive, with root inside and with a user', async () => {
    const environments = environmentsOf(user);
    const steps = [{ run: 'useradd --create-home --uid 1234 worker; chown worker /home/user' }];
    const { id } = await environments.make({ name: 'small', base: 'debian', steps });
    expect(await environments.built(id)).toMatchObject({ status: 'ready' });
    const inside = computerOf(user, await newComputer(user, { environmentId: id }));
    const command = 'id -u; echo root > /home/user/drive/root.txt; su worker -c "echo own > /home/user/drive/own.txt"';
    expect(await inside.exec(`${command}; stat -c %U /home/user/drive/root.txt`)).toMatchObject({
      stdout: '0\nworker\n',
      exitCode: 0,
    });
    expect(await contents()).toEqual({ 'root.txt': 'root\n', 'own.txt': 'own\n' });
    await drive.put('/api.txt', 'api');
    await seen(inside, 'cat /home/user/drive/api.txt', /api/);
  }, 600_000);
}
