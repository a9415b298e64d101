import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { discoverIssuer } from '../../../integrations/oidc/issuer.ts';

test('an endless answer of an issuer is aborted after a limit', async () => {
  const left = Promise.withResolvers<number>();
  let sent = 0;
  const endless = async function* () {
    yield '{"issuer": "';
    while (true) {
      sent += 65_536;
      yield 'x'.repeat(65_536);
    }
  };
  const server = createServer((_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json' });
    pipeline(Readable.from(endless()), res).catch(() => left.resolve(sent));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = { issuer, clientId: 'atrium', clientSecret: undefined } as Parameters<typeof discoverIssuer>[0];
  await expect(discoverIssuer(config)).rejects.toMatchObject({ code: 'ISSUER_FAILED' });
  // The first megabyte, and the contents of the connection's buffers.
  expect(await left.promise).toBeLessThan(16_000_000);
  server.close();
});
