import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestImage } from '../builders/images.ts';

/** A registry of images on a loopback port (OCI distribution specification, reading only), and its failures. */
export interface FakeRegistry extends AsyncDisposable {
  /** Its host and port, as in names of images. */
  host: string;
  /** The paths that were asked for. */
  requests: string[];
  /** Gives an image a tag, and returns its name. */
  put(repository: string, tag: string, image: TestImage): string;
  /** From now on only this account may read. */
  requireAccount(name: string, password: string): void;
  /** Requests whose path matches get no answer, or only the beginning of a body, until `release`. */
  hang(path: RegExp, how?: 'silent' | 'midway'): void;
  release(): void;
  /** Requests whose path matches get this instead. */
  answer(path: RegExp, status: number, body?: Buffer | string): void;
}

interface Content {
  type: string;
  body: Buffer;
}

export async function startFakeRegistry(): Promise<FakeRegistry> {
  const contents = new Map<string, Content>();
  const requests: string[] = [];
  const hanging: { path: RegExp; how: 'silent' | 'midway' }[] = [];
  const answers: { path: RegExp; status: number; body: Buffer | string }[] = [];
  let account: string | undefined;

  const send = (response: ServerResponse, status: number, type: string, body: Buffer | string) =>
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);

  function serve(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? '';
    requests.push(path);
    if (account !== undefined && request.headers.authorization !== account) {
      response.setHeader('www-authenticate', 'Basic realm="registry"');
      return void send(response, 401, 'application/json', errorOf('UNAUTHORIZED', 'authentication required'));
    }
    const answer = answers.find((each) => each.path.test(path));
    if (answer !== undefined) return void send(response, answer.status, 'application/octet-stream', answer.body);
    if (path === '/v2/') return void send(response, 200, 'application/json', '{}');
    const content = contents.get(path);
    const how = hanging.find((each) => each.path.test(path))?.how;
    if (how === 'silent') return;
    if (content === undefined) {
      const code = path.includes('/manifests/') ? 'MANIFEST_UNKNOWN' : 'BLOB_UNKNOWN';
      return void send(response, 404, 'application/json', errorOf(code, 'manifest unknown'));
    }
    if (how === 'midway') {
      response.writeHead(200, { 'content-type': content.type, 'content-length': content.body.length });
      return void response.write(content.body.subarray(0, content.body.length / 2));
    }
    send(response, 200, content.type, content.body);
  }

  const server = createServer(serve);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    host,
    requests,
    put(repository, tag, { manifest, digest, blobs }) {
      const { mediaType = 'application/vnd.oci.image.manifest.v1+json' } = JSON.parse(manifest.toString()) as {
        mediaType?: string;
      };
      for (const name of [tag, digest]) {
        contents.set(`/v2/${repository}/manifests/${name}`, { type: mediaType, body: manifest });
      }
      for (const [name, body] of blobs) {
        contents.set(`/v2/${repository}/blobs/${name}`, { type: 'application/octet-stream', body });
      }
      return `${host}/${repository}:${tag}`;
    },
    requireAccount(name, password) {
      account = `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
    },
    hang: (path, how = 'silent') => void hanging.push({ path, how }),
    release() {
      hanging.length = 0;
      server.closeAllConnections();
    },
    answer: (path, status, body = '') => void answers.push({ path, status, body }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const errorOf = (code: string, message: string) => JSON.stringify({ errors: [{ code, message }] });
