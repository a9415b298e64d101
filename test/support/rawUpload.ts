import { connect } from 'node:net';

export const boundary = 'b-o-u-n-d-a-r-y';
/** Shows a server that never answers as a missing answer. */
const silentTimeoutMs = 30_000;

/** A raw part of a multipart body: header lines, an empty line, the content. */
export function part(headers: string | readonly string[], content: string | Buffer): Buffer {
  const lines = typeof headers === 'string' ? [headers] : headers;
  return Buffer.concat([
    Buffer.from(`--${boundary}\r\n${lines.join('\r\n')}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ]);
}

export const field = (name: string, value: string | Buffer) =>
  part(`Content-Disposition: form-data; name="${name}"`, value);
export const file = (content: string | Buffer, fileName = 'file.bin') =>
  part(`Content-Disposition: form-data; name="file"; filename="${fileName}"`, content);
export const end = Buffer.from(`--${boundary}--\r\n`);

export interface RawUpload {
  url: string;
  path: string;
  token: string;
  body: Buffer;
  /** The announced length. Default: the body's real length. */
  contentLength?: number;
  contentType?: string;
  /** Whether to hang up after the last byte instead of waiting for the answer. */
  hangUp?: boolean;
}

/** Sends an upload exactly as the test wants it, valid or not. Undefined if no answer came. */
export async function sendRaw(upload: RawUpload): Promise<{ status: number; code: string | undefined } | undefined> {
  const { hostname, port } = new URL(upload.url);
  const { path, token, body, contentLength = body.length } = upload;
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.setTimeout(silentTimeoutMs, () => socket.destroy());
  const answer: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => answer.push(chunk));
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    'Connection: close',
    `Authorization: Bearer ${token}`,
    `Content-Type: ${upload.contentType ?? `multipart/form-data; boundary=${boundary}`}`,
    `Content-Length: ${contentLength}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  socket.write(body, () => {
    if (upload.hangUp) socket.destroy();
  });
  // Not `once`, which rejects if the server resets the connection after its answer.
  await new Promise((resolve) => socket.on('close', resolve));
  const [, status, text = ''] =
    /^HTTP\/1\.1 (\d{3})[\s\S]*?\r\n\r\n([\s\S]*)$/.exec(Buffer.concat(answer).toString()) ?? [];
  return status === undefined ? undefined : { status: Number(status), code: /"code":"([A-Z_]+)"/.exec(text)?.[1] };
}
