import { connect, type OnReadOpts, type Socket } from 'node:net';
import type { Writable } from 'node:stream';
import type { ContentCheck } from './checkedContent.ts';
import type { ByteRange } from './objectStore.ts';
import { connectTimeoutMs, stalledReaderMs } from './s3.ts';

const windowBytes = 512 * 1024;
const maxHeadBytes = 32 * 1024;

/**
 * Streams an object's bytes from the store to a reader through one reused buffer. Node's own HTTP client allocates new
 * memory for each 64 KiB, twice, and collecting that garbage costs several times as much as moving the bytes. Only
 * without TLS: with TLS, Node keeps filling the buffer after it was told to wait.
 */
export class DirectRead {
  private readonly socket: Socket;
  private readonly silenceMs: number;
  private readonly window = Buffer.allocUnsafeSlow(windowBytes);
  /** Bytes of the body that have not arrived yet. */
  private left: number;
  /** Body bytes that arrived together with the response head. */
  private rest: Buffer = Buffer.alloc(0);
  /** Receives the bytes in the window, and returns whether the window may be refilled at once. */
  private take: (bytes: Buffer) => boolean = () => false;

  private constructor(url: URL, length: number, silenceMs: number) {
    this.left = length;
    this.silenceMs = silenceMs;
    const onread: OnReadOpts = { buffer: this.window, callback: (count) => this.take(this.window.subarray(0, count)) };
    this.socket = connect({ host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port) || 80, onread });
  }

  /**
   * Requests exactly `length` bytes by a signed link, and resolves when they are about to arrive. Undefined if the
   * store answers anything else or closes the connection: the usual request then finds out why. Rejects if the store is
   * silent.
   */
  static async open(
    link: string,
    { length, silenceMs }: { length: number; silenceMs: number },
    range?: ByteRange,
  ): Promise<DirectRead | undefined> {
    const url = new URL(link);
    if (url.protocol !== 'http:') return undefined;
    const read = new DirectRead(url, length, silenceMs);
    return (await read.begin(url, range)) ? read : undefined;
  }

  private async begin(url: URL, range?: ByteRange): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const { socket, left } = this;
    const giveUp = () => resolve(false);
    socket.on('error', giveUp).on('close', giveUp);
    socket.once('timeout', () => reject(new Error('The object store does not answer.')));
    socket.setTimeout(connectTimeoutMs).on('connect', () => socket.setTimeout(this.silenceMs));
    this.take = (bytes) => {
      this.rest = Buffer.concat([this.rest, bytes]);
      const end = this.rest.indexOf('\r\n\r\n');
      if (end < 0 && this.rest.length < maxHeadBytes) return true;
      const head = this.rest.toString('latin1', 0, end);
      this.rest = this.rest.subarray(end + 4);
      resolve(isAnswer(head, range === undefined ? 200 : 206, left));
      return false;
    };
    const lines = [`GET ${url.pathname}${url.search} HTTP/1.1`, `Host: ${url.host}`, 'Connection: close'];
    if (range !== undefined) lines.push(`Range: bytes=${range.start}-${range.end}`);
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    try {
      const isBegun = await promise;
      if (!isBegun) socket.destroy();
      return isBegun;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  /**
   * Sends the bytes on, and ends `reader` after the last. Also resolves if the reader leaves. Rejects if the store
   * fails, or if `check` refuses the content before the last bytes are sent.
   */
  async sendTo(reader: Writable, check?: ContentCheck): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const { socket, rest } = this;
    if (reader.destroyed) return void socket.destroy();
    const breakOff = (error?: Error) => {
      // After the last byte, the fate of the connection does not matter.
      if (this.left === 0) return;
      reader.destroy();
      reject(error ?? new Error('The object store ended in the middle of an object.'));
    };
    socket.on('error', breakOff).on('close', () => breakOff());
    socket.once('timeout', () => socket.destroy(new Error('The object store, or a reader, has stalled.')));
    socket.setTimeout(this.silenceMs);
    reader.on('error', () => undefined).on('close', resolve);
    this.take = (bytes) => {
      this.left -= bytes.length;
      socket.setTimeout(stalledReaderMs);
      try {
        check?.add(bytes);
        if (this.left === 0) check?.end();
      } catch (error) {
        reader.destroy();
        reject(error);
        return false;
      }
      // The window can take new bytes once these have been written.
      reader.write(bytes, (error) => {
        if (error) return;
        socket.setTimeout(this.silenceMs);
        if (this.left > 0) socket.resume();
        else if (this.left === 0) reader.end(resolve);
        else breakOff(new Error('The object store sent more than it said.'));
      });
      return false;
    };
    if (rest.length > 0) this.take(rest);
    else socket.resume();
    await promise.finally(() => socket.destroy());
  }
}

/** Accepts only a response with the requested number of bytes and a Content-Length. */
function isAnswer(head: string, status: number, length: number): boolean {
  const headers = `${head}\r\n`;
  return (
    headers.startsWith(`HTTP/1.1 ${status} `) &&
    /\r\ncontent-length: *(\d+) *\r\n/i.exec(headers)?.[1] === `${length}` &&
    !/\r\ntransfer-encoding:/i.test(headers)
  );
}
