import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http, { type ClientRequest, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import express, { type ErrorRequestHandler } from 'express';
import type { Operation } from '../../../api/frame/contract.ts';
import { describeFailure } from '../../../api/frame/failures.ts';
import { readBody, releaseBody } from '../../../api/frame/middleware/body.ts';

// Long bodies arrive on the disk. No times are measured: a client is slow if it sends nothing for the short window.

const mebibyte = 2 ** 20;
const folder = mkdtempSync(join(tmpdir(), 'atrium-bodies-'));
const never = 3_600_000;
const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  rmSync(folder, { recursive: true });
});

/** A server that takes bodies of 4 MiB, and answers with the number of letters in one. */
async function serve(windowMs: number, more: Partial<{ all: number; perOwner: number }> = {}): Promise<number> {
  const app = express();
  app.use((req, _res, next) => {
    const operation = { bodyTypes: ['application/json'], bodyRequired: true, maxBodyBytes: 4 * mebibyte };
    req.operation = operation as unknown as Operation;
    req.caller = { userId: req.get('x-user') ?? 'one' } as never;
    next();
  });
  app.use(readBody({ dataDir: folder }, { all: 2, perOwner: 1, leastBytesPerSecond: 1_000, windowMs, ...more }));
  app.post('/', (req, res) => {
    const { length } = String(req.body.letters);
    releaseBody(req);
    res.json({ length });
  });
  const fail: ErrorRequestHandler = (error, _req, res, _next) => {
    const { status, code } = describeFailure(error);
    res.status(status).json({ code });
  };
  app.use(fail);
  const server = http.createServer(app).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const begin = (port: number, headers: Record<string, string>): ClientRequest =>
  http
    .request({ host: '127.0.0.1', port, method: 'POST', headers: { 'content-type': 'application/json', ...headers } })
    .on('error', () => undefined);

async function answerOf(request: ClientRequest): Promise<[number | undefined, unknown]> {
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return [response.statusCode, await json(response)];
}

async function send(port: number, letters: number, headers: Record<string, string> = {}) {
  const request = begin(port, headers);
  const body = Buffer.from(JSON.stringify({ letters: 'x'.repeat(letters) }));
  request.end(headers['content-encoding'] === 'gzip' ? gzipSync(body) : body);
  return answerOf(request);
}

test('Bodies arrive whole: short and long, with a length and without, and compressed', async () => {
  const port = await serve(never);
  const chunked = { 'transfer-encoding': 'chunked' };
  expect(await send(port, 10)).toEqual([200, { length: 10 }]);
  expect(await send(port, 10, chunked)).toEqual([200, { length: 10 }]);
  expect(await send(port, 3 * mebibyte)).toEqual([200, { length: 3 * mebibyte }]);
  expect(await send(port, 3 * mebibyte, chunked)).toEqual([200, { length: 3 * mebibyte }]);
  expect(await send(port, 3 * mebibyte, { 'content-encoding': 'gzip' })).toEqual([200, { length: 3 * mebibyte }]);
});

test('A body beyond the limit is 413: by its announced length before it comes, by its bytes, or unpacked', async () => {
  const port = await serve(never);
  const announced = begin(port, { 'content-length': '40000000' });
  announced.write('{');
  expect(await answerOf(announced)).toEqual([413, { code: 'BODY_TOO_LARGE' }]);
  announced.destroy();
  const chunked = begin(port, {});
  chunked.write(Buffer.alloc(5 * mebibyte, ' '));
  expect(await answerOf(chunked)).toEqual([413, { code: 'BODY_TOO_LARGE' }]);
  chunked.destroy();
  expect(await send(port, 5 * mebibyte, { 'content-encoding': 'gzip' })).toEqual([413, { code: 'BODY_TOO_LARGE' }]);
});

test('Clients that send little and wait keep nobody out', async () => {
  const port = await serve(never);
  const waiting = ['a', 'b', 'c', 'one', 'one', 'one'].map((user) => begin(port, { 'x-user': user }));
  await Promise.all(waiting.map((request) => new Promise((resolve) => request.write('{"letters": "', resolve))));
  expect(await send(port, 2 * mebibyte)).toEqual([200, { length: 2 * mebibyte }]);
  for (const request of waiting) request.destroy();
});

test('A client that stops sending a long body is refused, and the next one gets its place', async () => {
  const port = await serve(50);
  const stalled = begin(port, {});
  stalled.write(Buffer.alloc(2 * mebibyte, ' '));
  const next = send(port, 2 * mebibyte);
  expect(await answerOf(stalled)).toEqual([408, { code: 'REQUEST_TIMEOUT' }]);
  expect(await next).toEqual([200, { length: 2 * mebibyte }]);
});

test('A client that leaves in the middle of a long body frees its place', async () => {
  const port = await serve(never);
  const leaving = begin(port, {});
  await new Promise((resolve) => leaving.write(Buffer.alloc(3 * mebibyte, ' '), resolve));
  const next = send(port, 2 * mebibyte);
  leaving.destroy();
  expect(await next).toEqual([200, { length: 2 * mebibyte }]);
});
