import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer, type Server, type Socket } from 'node:net';
import { type NameTable, parseIpv4 } from './nameTable.ts';

/** A query has one name of at most 255 bytes. No resolver sends a longer message. */
const maxQueryBytes = 512;

const headerBytes = 12;
const types = { a: 1, ptr: 12, aaaa: 28 } as const;
const codes = { ok: 0, malformed: 1, unknownName: 3, unsupported: 4 } as const;
const ttlSeconds = 60;
const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const loopback = { v4: Buffer.of(127, 0, 0, 1), v6: Buffer.from([...Array(15).fill(0), 1]) };

/**
 * Answers a DNS query (RFC 1035). Undefined for a message that is not a query. Every name gets an address from the
 * table. Other record types get an empty answer, which is not an error. No other server is asked: a program learns
 * whether a name exists when it connects.
 */
export function answerQuery(query: Buffer, names: NameTable): Buffer | undefined {
  if (query.length < headerBytes) return undefined;
  const flags = query.readUInt16BE(2);
  if ((flags & 0x80_00) !== 0) return undefined;
  if (query.length > maxQueryBytes || query.readUInt16BE(4) !== 1) return reply(query, codes.malformed);
  if ((flags & 0x78_00) !== 0) return reply(query, codes.unsupported);
  const question = readQuestion(query);
  if (question === undefined) return reply(query, codes.malformed);
  const { name, type, isInternet, end } = question;
  const asked = query.subarray(headerBytes, end);
  if (!isInternet || !name.split('.').every((part) => label.test(part))) return reply(query, codes.unknownName, asked);
  if (name.endsWith('.in-addr.arpa')) {
    const found = names.nameOf(parseIpv4(name.split('.').slice(0, -2).reverse().join('.')) ?? -1);
    if (found === undefined) return reply(query, codes.unknownName, asked);
    return reply(query, codes.ok, asked, type === types.ptr ? record(type, encodeName(found)) : undefined);
  }
  return reply(query, codes.ok, asked, recordOf(name, type, names));
}

function recordOf(name: string, type: number, names: NameTable): Buffer | undefined {
  // RFC 6761 §6.3.
  const isLocal = name === 'localhost' || name.endsWith('.localhost');
  if (type === types.aaaa) return isLocal ? record(type, loopback.v6) : undefined;
  if (type !== types.a) return undefined;
  if (isLocal) return record(type, loopback.v4);
  const address = Buffer.alloc(4);
  address.writeUInt32BE(names.addressOf(name));
  return record(type, address);
}

function readQuestion(query: Buffer) {
  const labels: string[] = [];
  let at = headerBytes;
  for (let length = query[at] ?? 64; length !== 0; length = query[at] ?? 64) {
    // A larger length is a pointer or the end of the message. A question has neither.
    if (length > 63 || at - headerBytes + length > 254) return undefined;
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const end = at + 5;
  if (end > query.length || labels.length === 0) return undefined;
  return {
    name: labels.join('.').toLowerCase(),
    type: query.readUInt16BE(at + 1),
    isInternet: query.readUInt16BE(at + 3) === 1,
    end,
  };
}

function reply(query: Buffer, code: number, question?: Buffer, answer?: Buffer): Buffer {
  const header = Buffer.alloc(headerBytes);
  query.copy(header, 0, 0, 2);
  // A response with "recursion available", and with the opcode and "recursion desired" of the query.
  header.writeUInt16BE(0x80_80 | (query.readUInt16BE(2) & 0x79_00) | code, 2);
  header.writeUInt16BE(question === undefined ? 0 : 1, 4);
  header.writeUInt16BE(answer === undefined ? 0 : 1, 6);
  return Buffer.concat([header, question ?? Buffer.alloc(0), answer ?? Buffer.alloc(0)]);
}

function record(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12);
  // The name is a pointer to the question's name.
  head.writeUInt16BE(0xc0_00 | headerBytes, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(ttlSeconds, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function encodeName(name: string): Buffer {
  const labels = name.split('.').map((part) => Buffer.concat([Buffer.of(part.length), Buffer.from(part, 'latin1')]));
  return Buffer.concat([...labels, Buffer.of(0)]);
}

const idleTimeoutMs = 10_000;
const maxTcpClients = 32;

/** DNS over UDP. */
export function dnsOverUdp(names: NameTable): UdpSocket {
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => {
    const answer = answerQuery(query, names);
    // Without a callback, a failed send would emit an error on the socket.
    if (answer !== undefined) socket.send(answer, port, address, () => undefined);
  });
  return socket;
}

/** DNS over TCP, where each message is preceded by its length (RFC 7766). */
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
    // Cut off a client that sends without reading.
    if (answers.length > 0 && !client.write(Buffer.concat(answers))) client.destroy();
  });
}
