import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { PassThrough } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { temporaryFolder } from '../../support/folders.ts';
import { agentIn, type HeldComputer, heldComputer, outputOf } from '../../support/holder.ts';
import { canBeOtherUser } from '../../support/otherUser.ts';

const root = temporaryFolder();
let computer: HeldComputer;
let home: string;

beforeAll(async () => {
  computer = await heldComputer(await agentIn(root), { egressSocket: `${root}/egress.sock` });
  home = computer.spec.socketPath.replace('/run/holder.sock', '/home');
});

afterAll(() => computer.stop());

let count = 0;
async function sh(command: string): Promise<string> {
  const processId = `sh${count++}`;
  await computer.client.startProcess({ processId, command });
  const { stdout, stderr, exit } = await outputOf(computer.client, processId);
  expect({ stderr, exit }).toMatchObject({ stderr: '', exit: { exitCode: 0 } });
  return stdout;
}
const read = async (path: string | Uint8Array, range?: { start: number; end?: number }) => {
  const { body, ...about } = await computer.client.readFile(path, { range });
  return { ...about, text: await text(body) };
};
const refused = (code: string) => expect.objectContaining({ code });

describe('a file', () => {
  it('is written and read in whole and in ranges, with its mode and version', async () => {
    const { client } = computer;
    const written = await client.writeFile('made/a.txt', Buffer.from('0123456789'), { parents: true, mode: 0o750 });
    expect(written).toMatchObject({ size: 10, isNew: true });
    expect(await read('made/a.txt')).toMatchObject({ text: '0123456789', size: 10, mode: 0o750, etag: written.etag });
    expect(await read('/home/user/made/a.txt', { start: 7 })).toMatchObject({
      text: '789',
      range: { start: 7, end: 9 },
      size: 10,
    });
    expect((await read('made/a.txt', { start: 2, end: 3 })).text).toBe('23');
    await expect(read('made/a.txt', { start: 10 })).rejects.toEqual(refused('RANGE_NOT_SATISFIABLE'));
    const again = await client.writeFile('made/a.txt', Buffer.from('other'), { ifMatch: written.etag });
    expect(again).toMatchObject({ isNew: false });
    expect(await sh('stat -c "%a %s" made/a.txt')).toBe('750 5\n');
    await expect(client.writeFile('made/a.txt', Buffer.from('x'), { ifMatch: written.etag })).rejects.toEqual(
      refused('PRECONDITION_FAILED'),
    );
    await expect(client.writeFile('made/a.txt', Buffer.from('x'), { ifNew: true })).rejects.toEqual(
      refused('PRECONDITION_FAILED'),
    );
    await expect(client.writeFile('no/such/a', Buffer.from('x'))).rejects.toEqual(refused('FILE_NOT_FOUND'));
    expect((await read('made/a.txt')).text).toBe('other');
  });

  it('of 20 MiB is written and read unchanged', async () => {
    const bytes = randomBytes(20 * 1_048_576);
    async function* pieces() {
      for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
    }
    await computer.client.writeFile('large', pieces());
    const { body } = await computer.client.readFile('large');
    expect((await buffer(body)).equals(bytes)).toBe(true);
  });

  it('keeps its old contents if a write is aborted', async () => {
    const { client } = computer;
    await client.writeFile('kept', Buffer.from('old'));
    const cut = new AbortController();
    const body = new PassThrough();
    const writing = client.writeFile('kept', body, { signal: cut.signal });
    body.write(randomBytes(300_000));
    while (!readdirSync(home).some((name) => name.startsWith('.atrium-'))) await sh('true');
    cut.abort(new Error('cut'));
    await expect(writing).rejects.toThrow('cut');
    while (readdirSync(home).some((name) => name.startsWith('.atrium-'))) await sh('true');
    expect((await read('kept')).text).toBe('old');
  });

  it('goes to exactly one of several simultaneous conditional writes or moves', async () => {
    const { client } = computer;
    const won = async (all: Promise<unknown>[]) =>
      (await Promise.allSettled(all)).filter(({ status }) => status === 'fulfilled').length;
    const winners = { changed: 0, made: 0, moved: 0 };
    const rounds = 30;
    for (let round = 0; round < rounds; round++) {
      const { etag: ifMatch } = await client.writeFile('raced', Buffer.from('old'));
      const bodies = ['a', 'b', 'c'].map((text) => Buffer.from(text));
      winners.changed += await won(bodies.map((body) => client.writeFile('raced', body, { ifMatch })));
      winners.made += await won(bodies.map((body) => client.writeFile(`new-${round}`, body, { ifNew: true })));
      await Promise.all(bodies.map((body) => client.writeFile(`from-${body}`, body)));
      winners.moved += await won(bodies.map((body) => client.moveFile(`from-${body}`, `to-${round}`)));
    }
    expect(winners).toEqual({ changed: rounds, made: rounds, moved: rounds });
  });

  it('is read and written through a link inside the computer, and never through a link to the host', async () => {
    writeFileSync(`${root}/outside`, 'secret');
    await sh(`echo in > target; ln -s target link; ln -s ${root}/outside out; ln -s /proc/1/root${root}/outside out2`);
    expect((await read('link')).text).toBe('in\n');
    await computer.client.writeFile('link', Buffer.from('through'));
    expect(await sh('cat target; test -L link')).toBe('through');
    for (const path of ['out', 'out2', `../../../..${root}/outside`, `${root}/outside`]) {
      await expect(read(path)).rejects.toEqual(
        expect.objectContaining({ code: expect.stringMatching(/^FILE_(NOT_FOUND|ACCESS_DENIED)$/) }),
      );
    }
    await expect(computer.client.writeFile('/usr/x', Buffer.from('x'))).rejects.toEqual(refused('FILE_ACCESS_DENIED'));
  });

  it('is refused at once if it is a FIFO, a device or a folder', async () => {
    await sh('mkfifo fifo; mkdir folder');
    for (const path of ['fifo', 'folder', '/dev/zero', '/dev/tty', '/proc/self/fd']) {
      await expect(read(path)).rejects.toEqual(expect.objectContaining({ kind: 'unprocessable' }));
    }
    await expect(computer.client.writeFile('fifo', Buffer.from('x'))).rejects.toEqual(refused('NOT_A_FILE'));
    await expect(computer.client.writeFile('folder', Buffer.from('x'))).rejects.toEqual(refused('NOT_A_FILE'));
    expect((await read('/proc/version')).text).toContain('Linux');
  });

  it('is refused if it shows the variables or memory of a process', async () => {
    await sh('ln -sf /proc/self/environ env; ln -sf /proc/1 first');
    for (const path of ['env', 'first/environ', '/proc/self/environ', '/proc/self/task/../environ', '/proc/1/maps']) {
      await expect(read(path)).rejects.toEqual(refused('FILE_ACCESS_DENIED'));
    }
  });
});

describe('a folder', () => {
  it('is listed by name in pages, and links are shown as links', async () => {
    const { client } = computer;
    await sh('mkdir pages; cd pages; for i in $(seq -w 0 24); do echo $i > f$i; done; ln -s f01 z; mkdir y');
    const first = await client.listFiles('pages', { limit: 20 });
    expect(first.entries.map(({ name }) => name)).toEqual(
      Array.from({ length: 20 }, (_, at) => `f${String(at).padStart(2, '0')}`),
    );
    const second = await client.listFiles('pages', { limit: 20, after: String(first.nextCursor) });
    expect(second.entries.slice(-2)).toMatchObject([
      { name: 'y', type: 'directory' },
      { name: 'z', type: 'symlink', target: 'f01' },
    ]);
    expect(second).toMatchObject({ nextCursor: null });
    await expect(client.listFiles('pages/f01')).rejects.toEqual(refused('FILE_NOT_FOUND'));
  });

  it('is listed although a file in it is sparse and of maximal size', async () => {
    await sh('mkdir -p /tmp/holes; truncate -s 9223372036854775807 /tmp/holes/large; echo small > /tmp/holes/small');
    const { entries } = await computer.client.listFiles('/tmp/holes');
    expect(entries).toMatchObject([
      { name: 'large', size: Number.MAX_SAFE_INTEGER },
      { name: 'small', size: 6 },
    ]);
  });

  it('has files with names of any bytes, which can be read, moved and deleted', async () => {
    const { client } = computer;
    await sh(
      `mkdir names; cd names; touch -- $'new\\nline' $'tab\\t' '-rf' '%41' 'a b?c=d&e#' 'ünï'; echo raw > $'bad\\xff\\xfe'`,
    );
    const { entries } = await client.listFiles('names');
    expect(entries.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['new\nline', 'tab\t', '-rf', '%41', 'a b?c=d&e#', 'ünï']),
    );
    const bad = entries.find(({ nameBytes }) => nameBytes !== undefined);
    const path = Buffer.concat([Buffer.from('names/'), Buffer.from(String(bad?.nameBytes), 'base64')]);
    expect((await read(path)).text).toBe('raw\n');
    await client.moveFile(path, 'names/good');
    expect(await client.statFile('names/new\nline')).toMatchObject({ type: 'file', size: 0 });
    await client.deleteFile('names/-rf');
    await sh(`cp names/good $'names/worse\\xff'; mkdir -p $'names/\\xffdir/deep'`);
    await expect(client.deleteFile('names')).rejects.toEqual(refused('FOLDER_NOT_EMPTY'));
    await client.deleteFile('names', { recursive: true });
    await expect(client.statFile('names')).rejects.toEqual(refused('FILE_NOT_FOUND'));
  });

  describe('that is the home, a mount point or a parent of one', () => {
    const home = ['.', 'stays/..', '/home/user', '/home/user/', '/home/user/.', '/home/./user', '/home/user/../user'];
    const byLink = ['here/', 'here/.', 'stays/up/..', '/proc/self/cwd/', '/proc/self/root/home/user'];
    const others = ['/home', '/', '/tmp', '/tmp/.', '/proc', '/dev', '/usr', '//tmp//'];
    const paths = [...home, ...byLink, ...others];
    // The agent makes pipes in advance for processes. Their names are gone once it has opened them.
    const find = "find /home/user /tmp ! -path /home/user/replacing ! -path '/tmp/.pipes-*'";
    const list = () => sh(`${find} | sort; cat stays/a.txt /tmp/kept`);
    let before: string;

    beforeAll(async () => {
      await computer.client.writeFile('stays/a.txt', Buffer.from('kept'), { parents: true });
      await sh('ln -s /home/user here; ln -s . stays/up; echo too > /tmp/kept');
      before = await list();
    });
    afterEach(async () => expect(await list()).toBe(before));
    afterAll(() => sh('rm -r stays here /tmp/kept'));

    it.each(paths)('cannot be deleted as %s', async (path) => {
      for (const recursive of [true, false]) {
        const deleting = computer.client.deleteFile(path, { recursive });
        await expect(deleting).rejects.toEqual(refused('FILE_ACCESS_DENIED'));
      }
    });

    it.each(paths)('cannot be moved as %s, in its file system or to another', async (path) => {
      for (const to of ['/tmp/moved', '/home/user/moved', '/dev/shm/moved', '/moved']) {
        const moving = computer.client.moveFile(path, to, { replace: true });
        await expect(moving).rejects.toEqual(refused('FILE_ACCESS_DENIED'));
      }
    });

    it.each(paths)('cannot be replaced as %s by a folder or a file', async (path) => {
      await sh('mkdir replacing');
      for (const from of ['replacing', 'stays', 'stays/a.txt', '/tmp/kept']) {
        for (const replace of [true, false]) {
          const moving = computer.client.moveFile(from, path, { replace });
          await expect(moving).rejects.toEqual(refused('FILE_ACCESS_DENIED'));
        }
      }
      await expect(computer.client.writeFile(path, Buffer.from('x'))).rejects.toEqual(refused('NOT_A_FILE'));
      await sh('rmdir replacing');
    });
  });

  it('stays in place if a link to it is moved or deleted, and `~` is an ordinary name', async () => {
    const { client } = computer;
    await sh('ln -s /home/user here; echo kept > beside; mkdir "~"');
    await client.moveFile('here', '/tmp/there');
    expect(await sh('readlink /tmp/there')).toBe('/home/user\n');
    await client.deleteFile('/tmp/there', { recursive: true });
    await client.moveFile('~', '/tmp/tilde');
    expect(await sh('cat beside; rmdir /tmp/tilde; rm beside')).toBe('kept\n');
  });

  it('is created and moved, and files are replaced only with `replace`', async () => {
    const { client } = computer;
    await client.makeFolder('one/two', { parents: true });
    await client.makeFolder('one/two', { parents: true });
    await expect(client.makeFolder('one/two')).rejects.toEqual(refused('FILE_EXISTS'));
    await client.writeFile('one/a', Buffer.from('a'));
    await client.writeFile('one/b', Buffer.from('b'));
    await expect(client.moveFile('one/a', 'one/b')).rejects.toEqual(refused('FILE_EXISTS'));
    await client.moveFile('one/a', 'one/b', { replace: true });
    expect((await read('one/b')).text).toBe('a');
    // /tmp is another file system.
    await client.moveFile('one', '/tmp/moved');
    expect((await read('/tmp/moved/b')).text).toBe('a');
    await sh('ln -s /tmp/moved linked');
    await client.deleteFile('linked', { recursive: true });
    expect(await sh('cat /tmp/moved/b')).toBe('a');
    for (const path of ['', 'a\0b', 'a'.repeat(5_000)]) {
      await expect(client.statFile(path)).rejects.toEqual(refused('PATH_INVALID'));
    }
  });
});

describe('a move to another file system', () => {
  const leftOver = () => sh('find /home/user /tmp -name ".atrium-*"');
  const whole = 'tree\ntree/file\ntree/readonly\ntree/readonly/inner\n';
  const makeTree = () =>
    sh('mkdir -p tree/readonly; echo 1 > tree/file; echo 2 > tree/readonly/inner; chmod 555 tree/readonly');

  afterEach(async () => {
    expect(await leftOver()).toBe('');
    await sh('chmod -R u+rwx tree /tmp/to locked 2>/dev/null || :; rm -rf tree /tmp/to locked taken');
  });

  it('moves everything with its modes and times, and leaves nothing behind', async () => {
    await makeTree();
    await sh('chmod 750 tree/file; touch -d 2001-02-03 tree/file; ln -s nowhere tree/link; mkfifo tree/fifo');
    await computer.client.moveFile('tree/.', '/tmp/to');
    expect(await sh('cd /tmp/to; cat file readonly/inner; readlink link; test -p fifo; stat -c "%a %Y" file')).toMatch(
      /^1\n2\nnowhere\n750 9811\d+\n$/,
    );
    expect(await sh('stat -c %a /tmp/to/readonly; ls -d tree 2>&1 || :')).toMatch(/^555\n.*No such file/);
    await computer.client.moveFile('/tmp/to', 'tree');
    expect(await sh('cat tree/readonly/inner; ls -d /tmp/to 2>&1 || :')).toMatch(/^2\n.*No such file/);
  });

  it('changes nothing if the source cannot be read completely', async () => {
    await makeTree();
    await sh('echo 3 > tree/secret; chmod 000 tree/secret');
    const moving = computer.client.moveFile('tree', '/tmp/to', { replace: true });
    await expect(moving).rejects.toEqual(refused('FILE_ACCESS_DENIED'));
    expect(await sh('rm -f tree/secret; find tree | sort; ls -d /tmp/to 2>&1 || :')).toMatch(
      new RegExp(`^${whole}.*No such file`),
    );
  });

  it('changes nothing if the source cannot be removed', async () => {
    await sh('mkdir locked; echo 1 > locked/file; chmod 555 locked');
    const sources = ['locked/file'];
    if (canBeOtherUser) {
      // Every user may write to the folder, but only the owner of a file may remove it.
      mkdirSync(`${home}/sticky`);
      writeFileSync(`${home}/sticky/file`, '1\n');
      for (const path of ['sticky/file', 'sticky']) chownSync(`${home}/${path}`, 4_242, 4_242);
      chmodSync(`${home}/sticky`, 0o1777);
      sources.push('sticky/file');
    }
    for (const source of sources) {
      await expect(computer.client.moveFile(source, '/tmp/to')).rejects.toEqual(refused('FILE_ACCESS_DENIED'));
      expect(await sh(`cat ${source}; ls -d /tmp/to 2>&1 || :`)).toMatch(/^1\n.*No such file/);
    }
  });

  it('changes nothing if its target exists, is no folder, or is a folder that is not empty', async () => {
    await makeTree();
    await sh('mkdir -p taken/inner; echo old > taken/file');
    const { client } = computer;
    await client.moveFile('taken', '/tmp/to');
    await expect(client.moveFile('tree', '/tmp/to')).rejects.toEqual(refused('FILE_EXISTS'));
    await expect(client.moveFile('tree', '/tmp/to', { replace: true })).rejects.toEqual(refused('FOLDER_NOT_EMPTY'));
    await expect(client.moveFile('tree/file', '/tmp/to', { replace: true })).rejects.toEqual(refused('NOT_A_FILE'));
    await expect(client.moveFile('tree', '/tmp/to/file/below')).rejects.toEqual(refused('FILE_NOT_FOUND'));
    await expect(client.moveFile('tree', '/tmp/to/none/below')).rejects.toEqual(refused('FILE_NOT_FOUND'));
    await expect(client.moveFile('none', '/tmp/none')).rejects.toEqual(refused('FILE_NOT_FOUND'));
    expect(await sh('find tree | sort; cat /tmp/to/file; ls /tmp/to')).toBe(`${whole}old\nfile\ninner\n`);
    await client.moveFile('tree/file', '/tmp/to/file', { replace: true });
    expect(await sh('cat /tmp/to/file')).toBe('1\n');
  });

  it('gives the name to one of several simultaneous moves, and the others keep their files', async () => {
    const { client } = computer;
    const names = ['a', 'b', 'c', 'd'];
    await Promise.all(names.map((name) => client.writeFile(`taken/${name}`, Buffer.from(name), { parents: true })));
    const moves = await Promise.allSettled(names.map((name) => client.moveFile(`taken/${name}`, '/tmp/to')));
    expect(moves.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect((await sh('cat /tmp/to taken/*')).split('').sort()).toEqual(names);
  });
});

it('the host connects to a port inside, and a program inside connects to its egress proxy', async () => {
  const egress = createServer(
    (socket) => void socket.on('error', () => undefined).on('data', (data) => socket.write(`proxy: ${data}`)),
  );
  await once(egress.listen(`${root}/egress.sock`), 'listening');
  const program = `const net = require('node:net');
    net.createServer({ allowHalfOpen: true }, (s) => { s.on('data', (d) => s.write(d)); s.on('end', () => s.end(' bye')); })
      .listen(8000, '127.0.0.1', () => { const p = net.connect(3128, '127.0.0.1'); p.write('hello'); p.on('data', (d) => { console.log(String(d)); p.destroy(); }); });`;
  await computer.client.writeFile('server.cjs', Buffer.from(program));
  await computer.client.startProcess({ processId: 'server', command: ['/opt/node', 'server.cjs'] });
  for await (const { kind, payload } of computer.client.output('server', { follow: true })) {
    expect(`${kind}: ${Buffer.from(payload)}`).toBe('stdout: proxy: hello\n');
    break;
  }
  const socket = await computer.client.dialPort(8000);
  socket.end('ping');
  expect(await text(socket)).toBe('ping bye');
  await expect(computer.client.dialPort(8001)).rejects.toEqual(refused('PORT_NOT_LISTENING'));
  egress.close();
  await computer.client.signalProcess('server', 'SIGKILL');
});
