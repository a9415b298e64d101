import { once } from 'node:events';
import { connect } from 'node:net';

export interface SlowRequest {
  method: string;
  path: string;
  token: string;
  contentType?: string;
  body: string | Buffer;
}

/**
 * Sends the head of a request and the first byte of its body. The returned function sends the rest and returns the
 * answer's status and code.
 */
export async function beginSlowly(url: string, request: SlowRequest): Promise<() => Promise<string>> {
  const { method, path, token, contentType = 'application/json' } = request;
  const body = Buffer.from(request.body);
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const answer: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => answer.push(chunk)).on('error', () => undefined);
  const head = [
    `${method} ${path} HTTP/1.1`,
    'Host: localhost',
    'Connection: close',
    `Authorization: Bearer ${token}`,
    `Content-Type: ${contentType}`,
    `Content-Length: ${body.length}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  socket.write(body.subarray(0, 1));
  return async () => {
    const closed = new Promise((resolve) => socket.on('close', resolve));
    socket.write(body.subarray(1));
    await closed;
    const text = Buffer.concat(answer).toString();
    return `${/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]} ${/"code":"([A-Z_]+)"/.exec(text)?.[1]}`;
  };
}
