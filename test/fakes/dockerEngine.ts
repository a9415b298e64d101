import { once } from 'node:events';
import { createServer } from 'node:http';

/**
 * The part of a Docker engine's API that a host uses to check for one. It has every image, its trial containers
 * succeed, and it knows no other container.
 */
export async function startDockerEngine(socketPath: string): Promise<AsyncDisposable> {
  const server = createServer((req, res) => {
    const asked = `${req.method} ${req.url?.split('?', 1)[0]}`;
    const answers: [RegExp, number, unknown?][] = [
      [/^GET \/images\/[^/]+\/json$/, 200, {}],
      [/^POST \/containers\/create$/, 201, { Id: 'c0ffee' }],
      [/^POST \/containers\/[^/]+-trial\/start$/, 204],
      [/^POST \/containers\/[^/]+-trial\/wait$/, 200, { StatusCode: 0 }],
      [/^GET \/containers\/json$/, 200, []],
    ];
    const [, status, body] = answers.find(([pattern]) => pattern.test(asked)) ?? [asked, 404, { message: 'none' }];
    req.resume();
    res.writeHead(status, { 'content-type': 'application/json' }).end(body && JSON.stringify(body));
  });
  server.listen(socketPath);
  await once(server, 'listening');
  return {
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
