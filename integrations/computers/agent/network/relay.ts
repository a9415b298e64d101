import { createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type NameTable, parseIpv4 } from './nameTable.ts';

/** Opens a connection to the space's egress proxy. If too many are open, it throws or the stream fails. */
export type OpenEgress = () => Duplex;

const answerTimeoutMs = 30_000;
const maxAnswerBytes = 8_192;

/** Counts the connections of all relays of a computer together. */
export class Connections {
  readonly #max: number;
  #open = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Returns whether there is room for this connection, and counts it until it closes. */
  admit(client: Socket): boolean {
    if (this.#open >= this.#max) return false;
    this.#open++;
    client.once('close', () => {
      this.#open--;
    });
    return true;
  }
}

/** A relay for programs that use the proxy. It passes all bytes to the space's proxy. */
export function proxyRelay(open: OpenEgress, connections: Connections): Server {
  return relay(connections, (client) => join(client, open()));
}

/**
 * A relay for programs that do not use the proxy. They connect to the address that stands for a name, and the relay
 * connects them to that name.
 */
export function namedRelay(port: number, names: NameTable, open: OpenEgress, connections: Connections): Server {
  return relay(connections, async (client) => {
    const name = names.nameOf(parseIpv4(client.localAddress) ?? -1);
    if (name === undefined) return void client.resetAndDestroy();
    const egress = open();
    client.once('close', () => egress.destroy());
    egress.on('error', () => client.resetAndDestroy());
    egress.write(`CONNECT ${name}:${port} HTTP/1.1\r\nhost: ${name}:${port}\r\n\r\n`);
    const { status, answer, rest } = await readAnswer(egress);
    if (status === 200) {
      if (rest.length > 0) client.write(rest);
      return join(client, egress);
    }
    // A web client gets the proxy's answer. Other protocols cannot carry it.
    if (port !== 80) return void client.resetAndDestroy();
    client.write(answer);
    await pipeline(egress, client);
  });
}

function relay(connections: Connections, serve: (client: Socket) => Promise<void>): Server {
  return createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (client) => {
    client.on('error', () => client.destroy());
    if (!connections.admit(client)) return client.resetAndDestroy();
    serve(client).catch(() => client.resetAndDestroy());
    return undefined;
  });
}

/** When either side fails, both end. */
async function join(client: Socket, egress: Duplex): Promise<void> {
  try {
    await Promise.all([pipeline(client, egress), pipeline(egress, client)]);
  } finally {
    client.destroy();
    egress.destroy();
  }
}

/** Reads the head of the proxy's answer. `rest` may already hold the server's first bytes. */
function readAnswer(egress: Duplex): Promise<{ status: number; answer: Buffer; rest: Buffer }> {
  return new Promise((resolve, reject) => {
    let answer: Buffer = Buffer.alloc(0);
    const end = (error: Error) => {
      settle();
      egress.destroy();
      reject(error);
    };
    const onData = (piece: Buffer) => {
      answer = Buffer.concat([answer, piece]);
      const at = answer.indexOf('\r\n\r\n');
      if (at < 0) {
        if (answer.length > maxAnswerBytes) end(new Error('The proxy says too much.'));
        return;
      }
      settle();
      egress.pause();
      const [, status = '0'] = /^HTTP\/1\.[01] (\d{3})/.exec(answer.toString('latin1')) ?? [];
      resolve({ status: Number(status), answer, rest: answer.subarray(at + 4) });
    };
    const onEnd = () => end(new Error('The proxy has ended the connection.'));
    const timer = setTimeout(() => end(new Error('The proxy does not answer.')), answerTimeoutMs);
    const settle = () => {
      clearTimeout(timer);
      egress.off('data', onData).off('end', onEnd).off('close', onEnd).off('error', end);
    };
    egress.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', end);
  });
}
