import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { buildComputer, buildHostingProduct, computerOf, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { waitFor } from '../../support/waitFor.ts';

let product: TestProduct;
let computer: TestComputer;
beforeAll(async () => {
  product = await buildHostingProduct();
  computer = await buildComputer(product);
});
afterAll(() => product.close());

/** Writes a file. */
function put(path: string, body: Buffer | string, headers: Record<string, string> = {}, more = ''): Promise<Response> {
  const { user } = computer;
  return fetch(`${product.url}${computer.path}/files?path=${encodeURIComponent(path)}${more}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${user.token}`, 'content-type': 'application/octet-stream', ...headers },
    body: new Uint8Array(Buffer.from(body)),
  });
}

const read = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  computer.fetch(`/files?path=${encodeURIComponent(path)}`, { headers, method });

test('A file is written and read back unchanged, whole and in ranges', async () => {
  const bytes = randomBytes(3_000_000);
  const refused = await put('deep/er/file.bin', bytes);
  expect([refused.status, await refused.json()]).toEqual([
    404,
    expect.objectContaining({ code: 'FOLDER_NOT_FOUND', detail: expect.stringContaining('no folder deep/er.') }),
  ]);
  const answer = await put('deep/er/file.bin', bytes, {}, '&parents=true&mode=600');
  expect([answer.status, await answer.json()]).toEqual([
    200,
    { path: 'deep/er/file.bin', size: 3_000_000, etag: expect.any(String), isNew: true },
  ]);
  expect((await computer.exec('stat -c %a deep/er/file.bin')).stdout).toBe('600\n');
  const whole = await read('deep/er/file.bin');
  expect(Buffer.from(await whole.arrayBuffer()).equals(bytes)).toBe(true);
  const etag = whole.headers.get('etag') ?? '';
  expect(whole.headers.get('content-disposition')).toMatch(/^attachment; filename="?file\.bin/);
  expect((await read('/home/user/deep/er/file.bin', { 'if-none-match': etag })).status).toBe(304);
  const part = await read('deep/er/file.bin', { range: 'bytes=10-19' });
  expect([part.status, part.headers.get('content-range')]).toEqual([206, 'bytes 10-19/3000000']);
  expect(Buffer.from(await part.arrayBuffer())).toEqual(bytes.subarray(10, 20));
  const last = await read('deep/er/file.bin', { range: 'bytes=-5' });
  expect(Buffer.from(await last.arrayBuffer())).toEqual(bytes.subarray(-5));
  expect((await read('deep/er/file.bin', { range: 'bytes=3000000-' })).status).toBe(416);
  const head = await read('deep/er/file.bin', {}, 'HEAD');
  expect([head.status, head.headers.get('content-length')]).toEqual([200, '3000000']);
});

test('With If-Match or If-None-Match, a write replaces only the file that its writer knows', async () => {
  const first = (await (await put('known.txt', 'one')).json()) as { etag: string };
  expect((await put('known.txt', 'new', { 'if-none-match': '*' })).status).toBe(412);
  expect((await put('known.txt', 'two', { 'if-match': first.etag })).status).toBe(200);
  expect((await put('known.txt', 'three', { 'if-match': first.etag })).status).toBe(412);
  expect(await (await read('known.txt')).text()).toBe('two');
});

test('A body that breaks off leaves the file as it was', async () => {
  await put('kept.txt', 'as it was');
  const { hostname, port } = new URL(product.url);
  await new Promise<void>((resolve) => {
    const socket = connect(Number(port), hostname);
    const path = `${computer.path}/files?path=kept.txt`;
    socket.write(
      `PUT ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${computer.user.token}\r\ncontent-type: application/octet-stream\r\ncontent-length: 1000\r\n\r\nhalf`,
      () => socket.destroy(),
    );
    socket.once('close', () => resolve());
  });
  expect((await computer.exec('cat kept.txt; ls -A | grep -c tmp')).stdout).toMatch(/^as it was/);
  expect(await (await read('kept.txt')).text()).toBe('as it was');
});

test('folders are listed in pages, moved and deleted', async () => {
  await computer.expect(204, 'POST', '/files/folders', { path: 'list/inner' });
  await computer.exec('cd list; touch a b c; ln -s a link; mkfifo pipe');
  type Page = {
    data: { name: string; type: string; mode: string; target: string | null }[];
    nextCursor: string | null;
  };
  const names: string[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page: Page = await computer.expect<Page>(200, 'GET', `/files/list?path=list&limit=2${query}`);
    names.push(...page.data.map(({ name, type, target }) => `${name} ${type} ${target}`));
    cursor = page.nextCursor;
  } while (cursor !== null);
  expect(names).toEqual([
    'a file null',
    'b file null',
    'c file null',
    'inner directory null',
    'link symlink a',
    'pipe other null',
  ]);
  await computer.expect(204, 'POST', '/files/move', { from: 'list/a', to: 'list/moved' });
  expect(await computer.expect(409, 'POST', '/files/move', { from: 'list/b', to: 'list/c' })).toMatchObject({
    code: 'FILE_EXISTS',
  });
  await computer.expect(204, 'POST', '/files/move', { from: 'list/b', to: 'list/c', replace: true });
  await computer.expect(204, 'DELETE', '/files?path=list/link');
  await computer.expect(409, 'DELETE', '/files?path=list');
  await computer.expect(204, 'DELETE', '/files?path=list&recursive=true');
  await computer.expect(404, 'GET', '/files/list?path=list');
});

test('The home and mount points cannot be deleted, moved or replaced, and a refusal changes nothing', async () => {
  await put('precious/a.txt', 'kept', {}, '&parents=true');
  const refused = { code: 'FILE_ACCESS_DENIED' };
  for (const path of ['/home/user', '/home/user/', '.', 'precious/..', '/home/user/../user', '/home', '/tmp', '/']) {
    const query = `?path=${encodeURIComponent(path)}&recursive=true`;
    expect(await computer.expect(403, 'DELETE', `/files${query}`)).toMatchObject(refused);
    for (const [from, to] of [
      [path, '/tmp/x'],
      ['precious', path],
    ]) {
      expect(await computer.expect(403, 'POST', '/files/move', { from, to, replace: true })).toMatchObject(refused);
    }
  }
  expect((await computer.exec('cat precious/a.txt; ls -d /tmp/x /tmp/.atrium-* || :')).stdout).toBe('kept');
  await computer.expect(204, 'POST', '/files/move', { from: 'precious', to: '/tmp/precious' });
  expect((await computer.exec('cat /tmp/precious/a.txt; ls -d precious || :')).stdout).toBe('kept');
});

test('Only files can be read, and links do not lead out of the computer', async () => {
  await computer.exec(
    'mkfifo fifo; ln -s /etc/shadow out; ln -s ../../../../../../../../etc/hostname up; ln -s /proc/1/environ env',
  );
  await computer.expect(422, 'GET', '/files?path=fifo');
  await computer.expect(422, 'GET', '/files?path=.');
  expect((await read('out')).status).toBe(404);
  const inside = await read('/etc/passwd');
  expect(await inside.text()).not.toContain('mysql');
  expect((await read('../../../../root/.bashrc')).status).toBe(404);
  await computer.expect(400, 'GET', '/files?path=');
  await computer.expect(400, 'GET', '/files');
  await computer.expect(400, 'GET', '/files?path=a%00b');
});

test('Reading files does not wake a stopped computer, and strangers get 404', async () => {
  await put('still.txt', 'here');
  await computer.expect(200, 'POST', '/stop');
  const whole = await read('still.txt');
  expect([whole.status, await whole.text()]).toEqual([200, 'here']);
  const part = await read('still.txt', { range: 'bytes=1-2' });
  expect([part.status, await part.text()]).toEqual([206, 'er']);
  const page = await computer.expect<{ data: { name: string; size: number }[] }>(200, 'GET', '/files/list?path=.');
  expect(page.data).toContainEqual(expect.objectContaining({ name: 'still.txt', size: 4 }));
  await computer.expect(404, 'GET', '/files?path=absent');
  expect(await computer.expect(200, 'GET', '')).toMatchObject({ status: 'stopped' });
  const stranger = computerOf(await product.user(), computer.id, computer.user.spaceId);
  await stranger.expect(404, 'GET', '/files?path=still.txt');
  await stranger.expect(404, 'DELETE', '/files?path=still.txt');
  expect((await computer.exec('cat still.txt')).stdout).toBe('here');
});

test('A paused computer refuses at once what only the running computer could answer', async () => {
  await computer.expect(200, 'POST', '/stop');
  // This wakes the computer, but its status may not be "running" yet.
  await computer.exec('echo here > frozen.txt');
  await computer.expect(200, 'POST', '/pause');
  const { id } = await computer.expect<{ id: string }>(201, 'POST', '/processes', {
    command: 'echo before; sleep 1000',
    pty: { cols: 80, rows: 24 },
  });
  const output = async () => (await computer.fetch(`/processes/${id}/output`)).text();
  await waitFor('the process to print something', async () => (await output()).includes('before'));
  await computer.expect(200, 'POST', '/pause');
  const refused = [
    await computer.expect(409, 'GET', '/files?path=frozen.txt'),
    await computer.expect(409, 'GET', '/files/list?path=.'),
    await computer.expect(409, 'POST', `/processes/${id}/signal`, { signal: 'SIGKILL' }),
    await computer.expect(409, 'POST', `/processes/${id}/resize`, { cols: 100, rows: 30 }),
  ];
  expect(refused.map(({ code }) => code)).toEqual(Array(4).fill('COMPUTER_PAUSED'));
  // The output so far can be read without the computer.
  expect(await output()).toContain('before');
  expect(await computer.expect(200, 'GET', '')).toMatchObject({ status: 'paused' });
  expect((await computer.exec('cat frozen.txt')).stdout).toBe('here\n');
  expect(await (await read('frozen.txt')).text()).toBe('here\n');
  await computer.expect(204, 'POST', `/processes/${id}/signal`, { signal: 'SIGKILL' });
});
