import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer, type Server, type Socket } from 'node:net';
import { answerQuery, maxQueryBytes } from './dns.ts';
import type { NameTable } from './nameTable.ts';

const idleTimeoutMs = 10_000;
const maxTcpClients = 32;

/** Answers by UDP. */
export function dnsOverUdp(names: NameTable): UdpSocket {
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => {
    const answer = answerQuery(query, names);
    // Without a callback, an answer that cannot be sent would be an error of the socket.
    if (answer !== undefined) socket.send(answer, port, address, () => undefined);
  });
  return socket;
}

/** Answers by TCP, where each message has its length before it (RFC 7766). */
export function dnsOverTcp(names: NameTable): Server {
  const server = createServer((client) => serve(client, names));
  server.maxConnections = maxTcpClients;
  return server;
}

function serve(client: Socket, names: NameTable): void {
  let held: Buffer = Buffer.alloc(0);
  client.setTimeout(idleTimeoutMs, () => client.destroy());
  client.on('error', () => client.destroy());
  client.on('data', (piece) => {
    held = Buffer.concat([held, piece]);
    const answers: Buffer[] = [];
    while (held.length >= 2) {
      const length = held.readUInt16BE(0);
      if (length > maxQueryBytes) return client.destroy();
      if (held.length < 2 + length) break;
      const answer = answerQuery(held.subarray(2, 2 + length), names);
      held = held.subarray(2 + length);
      if (answer === undefined) return client.destroy();
      const prefix = Buffer.alloc(2);
      prefix.writeUInt16BE(answer.length);
      answers.push(prefix, answer);
    }
    // Who sends without reading is not waited for.
    if (answers.length > 0 && !client.write(Buffer.concat(answers))) client.destroy();
  });
}
