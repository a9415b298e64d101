import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import type { ChatUser, ThreadBody } from '../../builders/chat.ts';
import { buildPdf, onePixelPng } from '../../builders/files.ts';
import { buildProduct, requestsWith, type TestProduct } from '../../builders/product.ts';

// Files within messages: in base64 up to the limit of the body, and by an address.

const folder = mkdtempSync(join(tmpdir(), 'atrium-models-'));
const largePng = pngOf(900, 900);
let web: Server;
let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  web = createServer((req, res) => {
    if (req.url === '/picture.png') return void res.end(largePng);
    if (req.url?.startsWith('/large')) return void res.end(Buffer.alloc(12 * 2 ** 20, 'x'));
    if (req.url === '/endless') return void endless(res);
    if (req.url === '/inside') return void res.writeHead(302, { location: 'http://169.254.169.254/x' }).end();
    res.writeHead(404).end();
  });
  web.listen(0, '127.0.0.1');
  await once(web, 'listening');
  const file = join(folder, 'models.yaml');
  const seeing = { id: 'fake-1', provider: 'compatible', model: 'fake-1', capabilities: { images: true } };
  const blind = { id: 'blind', provider: 'compatible', model: 'fake-1' };
  writeFileSync(file, JSON.stringify({ models: [seeing, blind] }));
  product = await buildProduct({ ATRIUM_MODELS_FILE: file, ATRIUM_EGRESS_ALLOW_INTERNAL: `127.0.0.1:${port()}` });
  user = await product.user();
});
afterAll(async () => {
  await product.close();
  web.closeAllConnections();
  web.close();
  rmSync(folder, { recursive: true });
});

const port = () => (web.address() as AddressInfo).port;
const at = (path: string) => `http://127.0.0.1:${port()}${path}`;

function endless(res: NodeJS.WritableStream): void {
  const more = () => {
    while (res.write(Buffer.alloc(1_000_000))) {
      // Fill what the connection takes.
    }
    res.once('drain', more);
  };
  more();
}

/** A picture that does not compress: about three bytes a pixel. */
function pngOf(width: number, height: number): Buffer {
  const rows = Buffer.concat(
    Array.from({ length: height }, () => Buffer.concat([Buffer.from([0]), randomBytes(width * 3)])),
  );
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunkOf('IHDR', header),
    chunkOf('IDAT', deflateSync(rows, { level: 0 })),
    chunkOf('IEND', Buffer.alloc(0)),
  ]);
}

function chunkOf(type: string, data: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  // No reader here checks the sum.
  return Buffer.concat([length, Buffer.from(type), data, Buffer.alloc(4)]);
}

const text = (content: string) => ({ type: 'text', text: content });
const picture = (url: string) => ({ type: 'image_url', image_url: { url } });
const dataUrl = (bytes: Buffer, type = 'image/png') => `data:${type};base64,${bytes.toString('base64')}`;

async function post(messages: object[], more: object = {}, as: ChatUser = user): Promise<Response> {
  return as.fetch('/v1/chat/completions', { method: 'POST', body: { model: 'fake-1', messages, ...more } });
}

async function complete(messages: object[], more: object = {}, as?: ChatUser) {
  const response = await post(messages, more, as);
  const body = (await response.json()) as { choices: { message: { role: string; content: string } }[] };
  expect({ status: response.status, body }).toMatchObject({ status: 200 });
  return { threadId: response.headers.get('x-thread-id') ?? '', message: body.choices[0]?.message };
}

const sentWith = (words: string) => JSON.stringify(requestsWith(product.provider, words)[0]?.body.messages);

test('A large picture reaches the model, and the thread refers to it', async () => {
  const content = [text('A large picture'), picture(dataUrl(largePng))];
  const first = await complete([{ role: 'user', content }]);
  expect(sentWith('A large picture')).toContain(largePng.toString('base64'));
  const [message] = await user.messages(first.threadId);
  expect(message?.parts[1]).toMatchObject({
    type: 'data-file',
    data: { mimeType: 'image/png', size: largePng.length },
  });
  expect(JSON.stringify(message?.parts).length).toBeLessThan(2_000);

  // The same picture again, in the history: the thread goes on.
  const next = [{ role: 'user', content }, first.message, { role: 'user', content: 'And what is beside it?' }];
  expect((await complete(next as object[])).threadId).toBe(first.threadId);
  expect(sentWith('And what is beside it?')).toContain(largePng.toString('base64'));
});

test('A key without the drive’s scope sees what it sends', async () => {
  const { key } = await product.identity.keys.create(user.id, { name: 'chat only', scopes: ['chat'] });
  const content = [text('By a key'), picture(dataUrl(largePng))];
  const response = await fetch(`${product.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'fake-1', messages: [{ role: 'user', content }] }),
  });
  expect(response.status).toBe(200);
  expect(sentWith('By a key')).toContain(largePng.toString('base64'));
});

test('A body has at most 32 MiB', async () => {
  const content = [text('Too much'), picture(`data:image/png;base64,${'A'.repeat(33 * 2 ** 20)}`)];
  const response = await post([{ role: 'user', content }]);
  expect(response.status).toBe(413);
  expect(await response.json()).toMatchObject({ error: { code: 'BODY_TOO_LARGE', message: /32 MiB/ } });
});

test('A conversation of a named thread begins with its files', async () => {
  const content = [text('The first picture'), picture(dataUrl(largePng))];
  const messages = [
    { role: 'user', content },
    { role: 'assistant', content: 'I see.' },
    { role: 'user', content: 'In a new thread of mine' },
  ];
  const metadata = { thread_id: 'with-pictures' };
  const first = await complete(messages, { metadata });
  expect(sentWith('In a new thread of mine')).toContain(largePng.toString('base64'));
  expect((await complete([{ role: 'user', content: 'Again' }], { metadata })).threadId).toBe(first.threadId);
  const { data } = await user.get<{ data: ThreadBody[] }>(`/api/spaces/${user.spaceId}/threads`);
  expect(data.find(({ id }) => id === first.threadId)?.title).toBe('The first picture');
});

test('A refused request leaves no thread in the list', async () => {
  const before = await user.get<{ data: ThreadBody[] }>(`/api/spaces/${user.spaceId}/threads`);
  const content = [text('Refused'), picture(dataUrl(largePng)), picture(at('/missing'))];
  expect((await post([{ role: 'user', content }])).status).toBe(400);
  const after = await user.get<{ data: ThreadBody[] }>(`/api/spaces/${user.spaceId}/threads`);
  expect(after.data.length).toBe(before.data.length);
});

test('A document is read as text for a model that takes no PDF', async () => {
  const pdf = buildPdf(['The answer is on page one']);
  const file = { filename: 'answer.pdf', file_data: dataUrl(pdf, 'application/pdf') };
  await complete([{ role: 'user', content: [text('Read this'), { type: 'file', file }] }]);
  expect(sentWith('Read this')).toContain('The answer is on page one');
  const bare = { filename: 'notes.txt', file_data: Buffer.from('Bare base64').toString('base64') };
  await complete([{ role: 'user', content: [text('Read that'), { type: 'file', file: bare }] }]);
  expect(sentWith('Read that')).toContain('Bare base64');
});

test('A model that sees no pictures is told so', async () => {
  await complete([{ role: 'user', content: [text('Can you see?'), picture(dataUrl(onePixelPng))] }], {
    model: 'blind',
  });
  expect(sentWith('Can you see?')).toContain('this model cannot see images');
});

describe('Files by address', () => {
  test('A picture is fetched once and kept', async () => {
    const content = [text('From the web'), picture(at('/picture.png')), picture(at('/picture.png'))];
    const { threadId } = await complete([{ role: 'user', content }]);
    expect(sentWith('From the web')).toContain(largePng.toString('base64'));
    const [message] = await user.messages(threadId);
    expect(message?.parts[1]).toMatchObject({ type: 'data-file', data: { fileName: 'picture.png' } });
  });

  test.each([
    ['that is not there', () => at('/missing'), /answered 404/],
    ['that never ends', () => at('/endless'), /larger than 20 MB/],
    ['that leads into the machine’s network', () => at('/inside'), /not fetched/],
    ['of more than 32 MiB with the others', () => [1, 2, 3].map((n) => at(`/large${n}`)), /32 MiB together/],
    ['within the machine', () => 'http://127.0.0.1:1/x.png', /not fetched/],
  ])('A file %s is refused', async (_what, url, message) => {
    const response = await post([{ role: 'user', content: [text('x'), ...[url()].flat().map(picture)] }]);
    expect({ status: response.status, body: await response.json() }).toMatchObject({
      status: 400,
      body: { error: { code: 'FILE_NOT_FETCHED', message: expect.stringMatching(message) } },
    });
  });

  test('Two large files of a request are stored', async () => {
    const content = [text('Two large files'), picture(at('/large1')), picture(at('/large2.txt'))];
    const { threadId } = await complete([{ role: 'user', content }]);
    const [message] = await user.messages(threadId);
    const size = 12 * 2 ** 20;
    expect(message?.parts.slice(1)).toMatchObject([{ data: { size } }, { data: { size } }]);
  });

  test('An address with a password is refused by its reason', async () => {
    const url = at('/picture.png').replace('//', '//user:pass@');
    const response = await post([{ role: 'user', content: [text('x'), picture(url)] }]);
    expect({ status: response.status, body: await response.json() }).toMatchObject({
      status: 400,
      body: { error: { code: 'FILE_URL_INVALID', message: expect.stringMatching(/user name or a password/) } },
    });
  });

  test('A space’s deny list applies', async () => {
    const other = await product.user();
    const rules = { allow: [], deny: ['127.0.0.1'] };
    const set = await other.fetch(`/api/spaces/${other.spaceId}/egress`, { method: 'PUT', body: rules });
    expect(set.ok).toBe(true);
    const content = [text('x'), picture(at('/picture.png'))];
    expect((await post([{ role: 'user', content }], {}, other)).status).toBe(400);
  });

  test('A key needs the scope "web"', async () => {
    const { key } = await product.identity.keys.create(user.id, { name: 'no web', scopes: ['chat'] });
    const response = await fetch(`${product.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'fake-1',
        messages: [{ role: 'user', content: [text('x'), picture(at('/picture.png'))] }],
      }),
    });
    expect(await response.json()).toMatchObject({ error: { code: 'INSUFFICIENT_SCOPE' } });
  });
});
