import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import express from 'express';
import { pino } from 'pino';
import { accessLog } from '../../../api/frame/middleware/accessLog.ts';
import { requestId } from '../../../api/frame/middleware/requestId.ts';
import { SlowClients } from '../../../api/frame/slowClients.ts';

// Node removes the socket from a request whose body a pipeline has given up. Code that asks for the socket later, such
// as the access log or a timer, must not end the process.

test('A body that is refused half-way leaves its request without a socket, and the server goes on', async () => {
  const lines: string[] = [];
  const logger = pino({}, { write: (line: string) => void lines.push(line) });
  const slow = new SlowClients({ headersMs: 60_000, requestMs: 60_000, stallMs: 30 });
  const app = express();
  app.use(requestId(), accessLog(logger));
  const sockets: unknown[] = [];
  const looked = Promise.withResolvers<void>();
  app.use(async (req, res) => {
    const refusing = new Writable({ write: (_chunk, _encoding, done) => done(new Error('refused')) });
    await pipeline(req, refusing).catch(() => undefined);
    sockets.push(req.socket);
    // The timer for slow clients looks at the request meanwhile.
    setTimeout(looked.resolve, 200);
    await looked.promise;
    res.status(413).end('refused');
  });
  const server = http.createServer((req, res) => {
    slow.watch(req, res);
    app(req, res);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const request = http.request({ host: '127.0.0.1', port, method: 'PUT' }).on('error', () => undefined);
    request.write(Buffer.alloc(100_000));
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    expect([response.statusCode, sockets]).toEqual([413, [null]]);
    request.destroy();
    await once(response.resume(), 'close');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { status: 413, request: { address: expect.stringContaining('127.0.0.1') } },
    ]);
  } finally {
    slow.close();
    server.closeAllConnections();
    server.close();
  }
});
