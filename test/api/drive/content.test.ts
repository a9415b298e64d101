import type { ChatUser } from '../../builders/chat.ts';
import { driveOf, problemOf, type UploadBody } from '../../builders/drive.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';

/** Reading the content of files: through the API, or by a link straight from the object store. */
let product: TestProduct;
let user: ChatUser;
let drive: ReturnType<typeof driveOf>;
let file: UploadBody;
beforeAll(async () => {
  product = await buildProduct({});
  user = await product.user();
  drive = driveOf(product, user);
  file = await drive.put('/digits.txt', '0123456789');
});
afterAll(() => product.close());

const read = (headers: Record<string, string> = {}, query = '', id = file.id) =>
  drive.send('GET', `/items/${id}/content${query}`, undefined, headers);

test('A whole read has the content, and the headers that a reader needs to come back', async () => {
  const response = await read();
  expect(response.status).toBe(200);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'text/plain; charset=utf-8',
    'content-length': '10',
    'content-disposition': `inline; filename="digits.txt"; filename*=UTF-8''digits.txt`,
    etag: file.etag,
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-cache',
    'x-content-type-options': 'nosniff',
  });
  expect(Date.parse(response.headers.get('last-modified') ?? '')).not.toBeNaN();
  expect(await response.text()).toBe('0123456789');
});

test.each([
  ['the beginning', 'bytes=0-3', '0123', 'bytes 0-3/10'],
  ['one byte', 'bytes=4-4', '4', 'bytes 4-4/10'],
  ['from somewhere to the end', 'bytes=7-', '789', 'bytes 7-9/10'],
  ['the last ones', 'bytes=-2', '89', 'bytes 8-9/10'],
  ['more than there is', 'bytes=5-999', '56789', 'bytes 5-9/10'],
  ['more last ones than there are', 'bytes=-99', '0123456789', 'bytes 0-9/10'],
])('206 for a range: %s', async (_name, range, text, contentRange) => {
  const response = await read({ range });
  expect([response.status, response.headers.get('content-range')]).toEqual([206, contentRange]);
  expect(response.headers.get('content-length')).toBe(String(text.length));
  expect(await response.text()).toBe(text);
});

test.each([
  ['beyond the end', 'bytes=10-'],
  ['far beyond the end', 'bytes=99999999999999999999-'],
  ['the last none', 'bytes=-0'],
])('416 for a range %s', async (_name, range) => {
  const response = await read({ range });
  expect([response.status, response.headers.get('content-range')]).toEqual([416, 'bytes */10']);
  expect((await problemOf(response)).code).toBe('RANGE_NOT_SATISFIABLE');
});

test.each([
  ['several ranges', { range: 'bytes=0-1,5-6' }],
  ['a unit that we do not know', { range: 'lines=0-1' }],
  ['no range at all', { range: 'bytes=abc' }],
  ['a range that runs backwards', { range: 'bytes=5-2' }],
  ['an If-Range of another content', { range: 'bytes=0-1', 'if-range': '"other"' }],
  ['an If-Range by date', { range: 'bytes=0-1', 'if-range': new Date().toUTCString() }],
])('The whole content for %s', async (_name, headers) => {
  const response = await read(headers);
  expect([response.status, await response.text()]).toEqual([200, '0123456789']);
});

test('If-Range with the current tag gives the range', async () => {
  expect((await read({ range: 'bytes=0-1', 'if-range': file.etag })).status).toBe(206);
});

test('304 for If-None-Match with the current tag, in each of its forms', async () => {
  for (const tag of [file.etag, `"a", ${file.etag}`, `W/${file.etag}`, '*']) {
    const response = await read({ 'if-none-match': tag, range: 'bytes=0-1' });
    expect([tag, response.status, await response.text()]).toEqual([tag, 304, '']);
    expect(response.headers.get('etag')).toBe(file.etag);
  }
  expect((await read({ 'if-none-match': '"other"' })).status).toBe(200);
});

test('304 for If-Modified-Since if nothing has changed since, and only without If-None-Match', async () => {
  const modified = (await read()).headers.get('last-modified') ?? '';
  expect((await read({ 'if-modified-since': modified })).status).toBe(304);
  expect((await read({ 'if-modified-since': new Date(Date.parse(modified) - 1_000).toUTCString() })).status).toBe(200);
  expect((await read({ 'if-modified-since': modified, 'if-none-match': '"other"' })).status).toBe(200);
});

test('HEAD has the same headers and no bytes, and ignores a range', async () => {
  const response = await drive.send('HEAD', `/items/${file.id}/content`, undefined, { range: 'bytes=0-1' });
  expect([response.status, response.headers.get('content-length'), response.headers.get('etag')]).toEqual([
    200,
    '10',
    file.etag,
  ]);
  expect(await response.text()).toBe('');
});

test('An empty file has the length 0 and no range', async () => {
  const empty = await drive.put('/empty', '');
  const response = await read({}, '', empty.id);
  expect([response.status, response.headers.get('content-length'), await response.text()]).toEqual([200, '0', '']);
  expect((await read({ range: 'bytes=0-' }, '', empty.id)).status).toBe(416);
});

test.each([
  ['HTML', '/page.txt', '<!doctype html><script>alert(1)</script>', 'text/html; charset=utf-8'],
  ['SVG', '/image.txt', '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>', 'image/svg+xml'],
  ['XML', '/data.txt', '<?xml version="1.0"?><x:script xmlns:x="http://www.w3.org/1999/xhtml"/>', 'application/xml'],
])('%s never runs in Atrium’s origin', async (_name, path, bytes, contentType) => {
  const { id } = await drive.put(path, bytes);
  const { headers } = await read({}, '', id);
  expect(headers.get('content-type')).toBe(contentType);
  expect(headers.get('content-disposition')).toMatch(/^attachment; /);
  expect(headers.get('content-security-policy')).toMatch(/default-src 'none'.*; sandbox$/);
  expect(headers.get('x-content-type-options')).toBe('nosniff');
});

test('a name is sent in both forms, and cannot break out of the header', async () => {
  const { id } = await drive.put(`/\u202e"ä\\;%.txt`, 'x');
  const response = await read({}, '?download=true', id);
  expect(response.headers.get('content-disposition')).toBe(
    `attachment; filename="____;_.txt"; filename*=UTF-8''%E2%80%AE%22%C3%A4%5C%3B%25.txt`,
  );
});

test('A link works for everyone for a while, with a safe disposition', async () => {
  const { url, expiresAt } = await drive.get<{ url: string; expiresAt: string }>(`/items/${file.id}/url`);
  const left = Date.parse(expiresAt) - Date.now();
  expect(left).toBeGreaterThan(890_000);
  expect(left).toBeLessThanOrEqual(900_000);
  const response = await fetch(url);
  expect([response.status, await response.text()]).toEqual([200, '0123456789']);
  expect(response.headers.get('content-disposition')).toMatch(/^inline; /);
  expect((await fetch(`${url.replace(/X-Amz-Signature=./, 'X-Amz-Signature=0')}0`)).status).toBe(403);

  const page = await drive.put('/link.html', '<html>');
  const asked = await drive.get<{ url: string }>(`/items/${page.id}/url`);
  expect((await fetch(asked.url)).headers.get('content-disposition')).toMatch(/^attachment; /);
  for (const [expiresIn, status] of [
    [86_400, 200],
    [86_401, 400],
    [0, 400],
  ]) {
    expect((await drive.send('GET', `/items/${file.id}/url?expiresIn=${expiresIn}`)).status).toBe(status);
  }
});

test('409 for the content of a folder', async () => {
  const folder = await drive.folder('/folder');
  for (const path of ['content', 'url']) {
    const response = await drive.send('GET', `/items/${folder.id}/${path}`);
    expect([response.status, (await problemOf(response)).code]).toEqual([409, 'NOT_A_FILE']);
  }
});

test('404 for another space and for the trash, 401 without a credential', async () => {
  const stranger = await product.user();
  for (const path of ['content', 'url', 'versions']) {
    const theirs = driveOf(product, stranger);
    expect((await theirs.send('GET', `/items/${file.id}/${path}`)).status).toBe(404);
    const outsider = driveOf(product, { token: stranger.token, spaceId: user.spaceId });
    expect((await outsider.send('GET', `/items/${file.id}/${path}`)).status).toBe(404);
    const nobody = driveOf(product, { token: 'nonsense', spaceId: user.spaceId });
    expect((await nobody.send('GET', `/items/${file.id}/${path}`)).status).toBe(401);
  }
  const gone = await drive.put('/gone.txt', 'x');
  await drive.send('DELETE', `/items/${gone.id}`);
  expect((await read({}, '', gone.id)).status).toBe(404);
});

test('A reader who leaves half-way does no harm to the server', async () => {
  const large = await drive.put('/large.bin', new Uint8Array(12 * 1_048_576));
  for (let times = 0; times < 5; times++) {
    const leaving = new AbortController();
    const response = await fetch(`${product.url}/api/spaces/${user.spaceId}/drive/items/${large.id}/content`, {
      headers: { authorization: `Bearer ${user.token}` },
      signal: leaving.signal,
    });
    const reader = response.body?.getReader();
    await reader?.read();
    leaving.abort();
    await expect(reader?.read()).rejects.toThrow();
  }
  expect((await read()).status).toBe(200);
  expect(product.process.log()).toBe('');
});
