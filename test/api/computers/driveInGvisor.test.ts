import { buildComputer, buildHostingProduct, type TestComputer } from '../../builders/computer.ts';
import { driveOf } from '../../builders/drive.ts';
import { driveIn, drivePrograms, missingDrive, seen } from '../../builders/driveInComputers.ts';
import type { TestProduct } from '../../builders/product.ts';
import { drivers } from '../../integrations/computers/drivers.ts';

/** The drive of a space in a computer with gVisor's kernel. */
const gvisor = drivers.find(({ name }) => name === 'gVisor, as root');
const missing = missingDrive ?? gvisor?.missing;
if (missing !== undefined) {
  process.stderr.write(`\nNOT RUN: the drive in computers with gVisor: ${missing}\n`);
  test(`The drive in computers with gVisor is not tested on this machine: ${missing}`, () =>
    expect(missing).not.toBe(''));
} else buildTests();

function buildTests(): void {
  let product: TestProduct;
  let computer: TestComputer;
  let drive: ReturnType<typeof driveOf>;
  beforeAll(async () => {
    product = await buildHostingProduct({
      ATRIUM_COMPUTERS_DRIVERS: 'gvisor',
      ATRIUM_COMPUTER_DRIVER: 'gvisor',
      ATRIUM_COMPUTERS_RUNSC: gvisor?.options.runsc,
    });
    const user = await product.user();
    computer = await buildComputer(product, user);
    drive = driveOf(product, user);
  });
  afterAll(() => product.close());

  const run = async (command: string) => {
    const { stdout, stderr, exitCode } = await computer.exec(command);
    if (exitCode !== 0) throw new Error(`${command} ended with ${exitCode}: ${stdout}${stderr}`);
    return stdout;
  };

  test('Files go both ways, are changed, renamed and removed', async () => {
    expect(await run('cat /proc/version')).toMatch(/gvisor/i);
    await run('cd ~/drive && mkdir notes && echo hello > notes/a.txt && echo "echo run" > x && chmod +x x');
    expect(await drive.names()).toEqual(['notes/', 'x']);
    await drive.put('/notes/b.txt', 'from the API');
    expect(await run('cat ~/drive/notes/b.txt ~/drive/notes/a.txt; sh ~/drive/x')).toBe('from the APIhello\nrun\n');
    await drive.put('/notes/a.txt', 'changed', 'replace');
    await seen(computer, 'cat ~/drive/notes/a.txt', /changed/);
    await run('cd ~/drive && mv notes/a.txt moved && echo more >> moved && rm -r notes && ln -s moved link');
    expect(await drive.names()).toEqual(['link', 'moved', 'x']);
    expect(await run('cat ~/drive/link')).toBe('changedmore\n');
    expect(await driveIn(computer)).toMatchObject({ state: 'on', access: 'write', error: null });
  });

  test('After the program that mounts drives was killed, the drive is back in the running computer', async () => {
    await run('touch /tmp/running; echo kept > ~/drive/kept');
    for (const pid of drivePrograms(product.environment.config.computers.dir)) process.kill(pid, 'SIGKILL');
    await seen(computer, 'cat ~/drive/kept', /^kept$/m);
    await run('test -e /tmp/running; echo more >> ~/drive/kept; echo new > ~/drive/new');
    expect(await drive.names()).toEqual(expect.arrayContaining(['kept', 'new']));
    await drive.put('/new', 'from the API', 'replace');
    expect(await run('cat ~/drive/kept ~/drive/new; test -e /tmp/running')).toBe('kept\nmore\nfrom the API');
  });

  test('The drive is there again after a stop, and the home keeps nothing of it', async () => {
    await run('echo again > ~/drive/again');
    await computer.expect(200, 'POST', '/stop');
    expect(await (await computer.fetch('/files/list?path=drive')).text()).not.toContain('again');
    expect(await run('cat ~/drive/again')).toBe('again\n');
  });
}
