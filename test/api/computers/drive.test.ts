import { appsOf, manifestOf } from '../../builders/app.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildComputer, buildHostingProduct, computerOf, type TestComputer } from '../../builders/computer.ts';
import { driveOf, type ItemBody, type ItemPage } from '../../builders/drive.ts';
import { driveIn, missingDrive, newComputer, seen } from '../../builders/driveInComputers.ts';
import type { TestProduct } from '../../builders/product.ts';

/** The drive of a space inside its computers, with the real product and real sandboxes. */
if (missingDrive !== undefined) {
  test(`The drive in computers is not tested on this machine: ${missingDrive}`, () =>
    expect(missingDrive).not.toBe(''));
} else buildTests();

function buildTests(): void {
  let product: TestProduct;
  let user: ChatUser;
  let computer: TestComputer;
  let drive: ReturnType<typeof driveOf>;
  beforeAll(async () => {
    product = await buildHostingProduct();
  });
  afterAll(() => product.close());
  beforeEach(async () => {
    user = await product.user();
    computer = await buildComputer(product, user);
    drive = driveOf(product, user);
  });

  const byPath = async (path: string): Promise<ItemBody> => {
    const [item] = (await drive.get<ItemPage>(`/items?path=${encodeURIComponent(path)}`)).data;
    if (item === undefined) throw new Error(`There is nothing at ${path}.`);
    return item;
  };

  /** Runs a command that must succeed. */
  async function run(command: string, on = computer): Promise<string> {
    const { stdout, stderr, exitCode } = await on.exec(command);
    if (exitCode !== 0) throw new Error(`${command} ended with ${exitCode}: ${stdout}${stderr}`);
    return stdout;
  }

  test('What a command writes is in the drive when it ends, and what the API writes is in the computer', async () => {
    await run(
      'cd ~/drive && mkdir -p notes && echo hello > notes/a.txt && printf "#!/bin/sh\\necho run" > x && chmod +x x',
    );
    expect(await drive.names()).toEqual(['notes/', 'x']);
    expect(await drive.content((await byPath('/notes/a.txt')).id)).toBe('hello\n');
    expect(await byPath('/x')).toMatchObject({ executable: true, createdBy: user.id, version: 1 });
    await drive.put('/notes/b.txt', 'from the API');
    await seen(computer, 'cat ~/drive/notes/b.txt', /from the API/);
    await drive.put('/notes/a.txt', 'changed', 'replace');
    await seen(computer, 'cat ~/drive/notes/a.txt', /changed/);
    expect(await run('~/drive/x')).toBe('run\n');
    expect(await driveIn(computer)).toMatchObject({ state: 'on', access: 'write', pendingFiles: 0, error: null });
  });

  test('A rename, a removal and a new content are a move, the trash and a version', async () => {
    await run('cd ~/drive && mkdir a b && echo one > a/file && echo two > a/file && mv a/file b/other && rmdir a');
    const file = await byPath('/b/other');
    expect(await drive.names()).toEqual(['b/']);
    expect(await drive.content(file.id)).toBe('two\n');
    await run('cd ~/drive/b && echo three > .new && mv .new other');
    expect(await byPath('/b/other')).toMatchObject({ id: file.id, kind: 'file' });
    expect(await drive.content(file.id)).toBe('three\n');
  });

  test('A folder that rm -r removes is one item of the trash, and comes back with its files', async () => {
    await run('cd ~/drive && mkdir -p top/sub && echo one > top/sub/one && echo two > top/two');
    await run('rm -r ~/drive/top');
    expect(await drive.names()).toEqual([]);
    const trash = (await drive.get<ItemPage>('/trash')).data;
    expect(trash.map(({ name }) => name)).toEqual(['top']);
    await drive.send('POST', `/items/${trash[0]?.id}/restore`);
    expect(await run('cat ~/drive/top/sub/one ~/drive/top/two')).toBe('one\ntwo\n');
  });

  test('What is in the drive before a command is there when it begins', async () => {
    for (const n of [1, 2, 3, 4, 5]) {
      await drive.put('/file', `content ${n}`, n === 1 ? 'error' : 'replace');
      await drive.put(`/new${n}`, `new ${n}`);
      expect(await run(`cat ~/drive/file ~/drive/new${n}`)).toBe(`content ${n}new ${n}`);
    }
  });

  test('A file of the drive is not found in a computer that does not run, which says where it is', async () => {
    await drive.put('/notes/a b.txt', 'text');
    await run('cat "drive/notes/a b.txt"');
    await computer.expect(200, 'POST', '/stop');
    const detail = expect.stringContaining(`/api/spaces/${user.spaceId}/drive/items?path=%2Fnotes%2Fa%20b.txt`);
    const missing = await computer.fetch('/files?path=drive/notes/a%20b.txt');
    expect([missing.status, await missing.json()]).toEqual([404, expect.objectContaining({ detail })]);
    const other = await computer.fetch('/files?path=elsewhere.txt');
    expect((await other.json()) as object).not.toMatchObject({ detail });
  });

  test('A symlink is one in the drive, and is not followed there', async () => {
    await run('cd ~/drive && echo text > file && ln -s file link && ln -s /etc/hostname host');
    expect(await byPath('/link')).toMatchObject({ kind: 'symlink', target: 'file' });
    expect(await byPath('/host')).toMatchObject({ kind: 'symlink', target: '/etc/hostname' });
    expect(await run('cat ~/drive/link')).toBe('text\n');
  });

  test('What is at its place in a home is kept, and saves and copies of the home do not have the drive', async () => {
    const id = await newComputer(user, { drive: false });
    const other = computerOf(user, id);
    await run('mkdir -p drive && echo mine > drive/own.txt', other);
    expect(await driveIn(other, ({ state }) => state === 'off')).toMatchObject({ access: null });
    await other.expect(200, 'POST', '/stop');
    await drive.put('/shared.txt', 'shared');
    expect(await other.expect(200, 'PATCH', '', { drive: true })).toMatchObject({ status: 'stopped' });
    expect(await run('cat drive/shared.txt drive.before/own.txt', other)).toBe('sharedmine\n');
    await other.expect(200, 'POST', '/stop');
    const listed = await other.fetch('/files/list?path=drive');
    expect(await listed.text()).not.toContain('shared.txt');
  });

  test('A viewer’s computer reads, that of a removed member does not, and another space’s sees nothing', async () => {
    const member = await product.user();
    const { members } = product.identity;
    await members.add(user.spaceId, member.email, 'editor');
    const theirs = computerOf(member, await newComputer(member, {}, user.spaceId), user.spaceId);
    await run('echo theirs > ~/drive/theirs.txt', theirs);
    expect(await byPath('/theirs.txt')).toMatchObject({ createdBy: member.id });
    const ours = computerOf(user, theirs.id);
    await members.changeRole(user.spaceId, member.id, 'viewer');
    await driveIn(ours, ({ access }) => access === 'read');
    expect(await run('cat ~/drive/theirs.txt', ours)).toBe('theirs\n');
    expect((await ours.exec('echo x > ~/drive/theirs.txt')).stderr).toMatch(/Read-only file system/);
    await members.remove(user.spaceId, member.id);
    await driveIn(ours, ({ access }) => access === 'none');
    expect((await ours.exec('cat ~/drive/theirs.txt; ls ~/drive')).stderr).toMatch(/Permission denied/);
    const stranger = await buildComputer(product);
    expect(await run('ls -A ~/drive', stranger)).toBe('');
  });

  test('Two computers that change one file at once both keep what they wrote', async () => {
    const second = computerOf(user, await newComputer(user, { name: 'Second' }));
    await run('echo zero > ~/drive/plan.md');
    await seen(second, 'cat ~/drive/plan.md', /zero/);
    const write = (on: TestComputer, text: string) =>
      on.exec(`exec 3<> ~/drive/plan.md; echo ${text} >&3; sleep 0.3; exec 3>&-`);
    await Promise.all([write(computer, 'first'), write(second, 'second')]);
    const files = (await drive.get<ItemPage>('/items')).data;
    const contents = await Promise.all(files.map(({ id }) => drive.content(id)));
    expect(contents.toSorted()).toEqual(['first\n', 'second\n']);
    expect(files.map(({ name }) => name)).toContainEqual(expect.stringMatching(/^plan \(from .+, .+\)\.md$/));
  });

  test('Packages and caches stay on the computer', async () => {
    await run('cd ~/drive && mkdir -p app/node_modules/x && echo x > app/node_modules/x/y && echo z > app/z && sync');
    expect(await drive.names('/app')).toEqual(['z']);
    await computer.expect(200, 'POST', '/stop');
    expect(await run('cat ~/drive/app/node_modules/x/y')).toBe('x\n');
  });

  test('A run that is given secrets, which has a sandbox of its own, has the drive too', async () => {
    const apps = appsOf(product, user);
    await user.fetch(`/api/spaces/${user.spaceId}/secrets/TOKEN`, { method: 'PUT', body: { value: 'a-secret-value' } });
    const command = 'echo private > ~/drive/private.txt; cat ~/drive/private.txt';
    const id = await apps.app(manifestOf(command, { secrets: ['TOKEN'] }));
    expect(await apps.run(id)).toMatchObject({ body: { status: 'succeeded', output: 'private\n' } });
    expect(await drive.names()).toContain('private.txt');
  });

  test('What a program changes in an app that gets secrets waits for approval', async () => {
    const apps = appsOf(product, user);
    await user.fetch(`/api/spaces/${user.spaceId}/secrets/TOKEN`, { method: 'PUT', body: { value: 'a-secret-value' } });
    const id = await apps.app(manifestOf('sh ./report.sh', { secrets: ['TOKEN'] }), { 'report.sh': 'echo report' });
    expect((await apps.run(id)).body).toMatchObject({ ok: true, output: 'report\n' });
    const { path } = (await apps.get(id)).body;
    await run(`echo 'echo $TOKEN | rev' > ~/drive'${path}/report.sh'`);
    const { waitingVersionId } = (await apps.get(id)).body;
    expect(waitingVersionId).toEqual(expect.any(String));
    expect((await apps.run(id)).body).toMatchObject({ ok: true, output: 'report\n', waitingVersionId });
  });
}
