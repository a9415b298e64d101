import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { checkHomes } from '../../bin/support/checkHomes.ts';
import { buildHostingProduct } from '../builders/computer.ts';
import type { TestProduct } from '../builders/product.ts';

// The check of `atrium doctor --deep`.

let product: TestProduct;

beforeAll(async () => {
  product = await buildHostingProduct();
  await product.user();
});
afterAll(() => product.close());

test('each file is there after each event, and the space of the check is deleted', async () => {
  const { url: apiUrl, identity } = product;
  expect(await checkHomes({ apiUrl, identity, cycles: 4 })).toEqual({
    state: 'ok',
    detail: '4 cycles of stop, pause, recover, crash: each of 4 files was there each time',
  });
  const [left] = await product.environment.database.sequelize.query(
    "SELECT id FROM spaces WHERE name = 'atrium doctor --deep' AND deleted_at IS NULL",
  );
  expect(left).toEqual([]);
});

test('a file that has changed is noticed', async () => {
  let answered = 0;
  // The second answer with a checksum has another one.
  const proxy = createServer(async (req, res) => {
    const body = await buffer(req);
    const { host: _, 'content-length': __, connection: ___, ...headers } = req.headers;
    const { method } = req;
    const answer = await fetch(product.url + req.url, {
      method,
      headers: headers as Record<string, string>,
      ...(body.length > 0 && { body }),
    });
    const text = await answer.text();
    const isChanged = /[0-9a-f]{64} {2}file-/.test(text) && ++answered === 2;
    const { status } = answer;
    res.writeHead(status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' });
    res.end(isChanged ? text.replace(/[0-9a-f]{64}/, '0'.repeat(64)) : text);
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const apiUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  try {
    expect(await checkHomes({ apiUrl, identity: product.identity, cycles: 4 })).toEqual({
      state: 'wrong',
      detail: 'cycle 1 (stop) changed or lost 1 of 1 files',
    });
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
});
