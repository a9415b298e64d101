import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import fc from 'fast-check';
import { answerQuery, dnsOverTcp, dnsOverUdp } from '../../../integrations/computers/agent/network/dns.ts';
import { NameTable, parseIpv4 } from '../../../integrations/computers/agent/network/nameTable.ts';

const encode = (name: string) =>
  Buffer.concat([...name.split('.').map((part) => Buffer.from([part.length, ...Buffer.from(part)])), Buffer.of(0)]);

function query(name: Buffer | string, type = 1, options: { flags?: number; count?: number; class?: number } = {}) {
  const { flags = 0x0100, count = 1 } = options;
  const head = Buffer.from([0xab, 0xcd, flags >> 8, flags & 255, 0, count, 0, 0, 0, 0, 0, 0]);
  const encoded = typeof name === 'string' ? encode(name) : name;
  return Buffer.concat([head, encoded, Buffer.from([0, type, 0, options.class ?? 1])]);
}

const codeOf = (answer: Buffer | undefined) => answer && answer.readUInt16BE(2) & 15;
const countOf = (answer: Buffer | undefined) => answer?.readUInt16BE(6);
const addressIn = (answer: Buffer | undefined) => answer?.readUInt32BE(answer.length - 4);
const [low, high] = [parseIpv4('127.64.0.0') ?? 0, parseIpv4('127.127.255.255') ?? 0];

test('a name in any case gets the same address of the table, which leads back to the name', () => {
  const names = new NameTable();
  const answer = answerQuery(query('Api.Example.COM'), names);
  expect(answer?.readUInt16BE(0)).toBe(0xabcd);
  expect([codeOf(answer), countOf(answer)]).toEqual([0, 1]);
  const address = addressIn(answer) ?? 0;
  expect(names.nameOf(address)).toBe('api.example.com');
  expect(address).toBeGreaterThanOrEqual(low);
  expect(address).toBeLessThanOrEqual(high);
  expect(addressIn(answerQuery(query('api.example.com'), new NameTable()))).toBe(address);
});

test('localhost, reverse lookups and record types without data are answered', () => {
  const names = new NameTable();
  for (const name of ['localhost', 'app.localhost'])
    expect(addressIn(answerQuery(query(name), names))).toBe(parseIpv4('127.0.0.1'));
  expect(answerQuery(query('localhost', 28), names)?.subarray(-16)).toEqual(Buffer.from([...Array(15).fill(0), 1]));
  for (const type of [28, 16, 15, 33, 65, 255]) {
    const answer = answerQuery(query('a.example', type), names);
    expect([codeOf(answer), countOf(answer)]).toEqual([0, 0]);
  }
  const address = names.addressOf('a.example');
  const reverse = [24, 16, 8, 0].map((bits) => (address >>> bits) & 255).reverse();
  const found = answerQuery(query(`${reverse.join('.')}.in-addr.arpa`, 12), names);
  expect(found?.subarray(-11)).toEqual(encode('a.example'));
  expect(codeOf(answerQuery(query('1.0.0.127.in-addr.arpa', 12), names))).toBe(3);
});

test('a malformed or unsupported query is refused or ignored', () => {
  const names = new NameTable();
  expect(answerQuery(Buffer.alloc(11), names)).toBeUndefined();
  expect(answerQuery(query('a.example', 1, { flags: 0x8180 }), names)).toBeUndefined();
  expect(codeOf(answerQuery(query('a.example', 1, { flags: 0x2800 }), names))).toBe(4);
  expect(codeOf(answerQuery(query('a.example', 1, { count: 2 }), names))).toBe(1);
  expect(codeOf(answerQuery(Buffer.concat([query('a.example'), Buffer.alloc(60_000)]), names))).toBe(1);
  expect(codeOf(answerQuery(query(Buffer.of(0xc0, 0x0c)), names))).toBe(1);
  expect(codeOf(answerQuery(query(Array(5).fill('a'.repeat(60)).join('.')), names))).toBe(1);
  expect(codeOf(answerQuery(query(Buffer.of(0)), names))).toBe(1);
  expect(codeOf(answerQuery(query('a.example', 1, { class: 3 }), names))).toBe(3);
  for (const name of ['a b.example', 'a\r\nhost: x', '-a.example', 'a..b'.replace('..', '.\0.')])
    expect(codeOf(answerQuery(query(name), names))).toBe(3);
});

test('random queries cause no error and no answer that is longer than a datagram', () => {
  const names = new NameTable(100);
  const mutated = fc.tuple(fc.uint8Array({ maxLength: 700 }), fc.boolean(), fc.nat(40)).map(([bytes, isQuery, at]) => {
    const whole = Buffer.from(isQuery ? Buffer.concat([query('a.example'), bytes]) : bytes);
    if (whole.length > at) whole[at] = (whole[at] ?? 0) ^ 0xff;
    return whole;
  });
  fc.assert(
    fc.property(mutated, (bytes) => {
      expect(answerQuery(bytes, names)?.length ?? 0).toBeLessThanOrEqual(600);
    }),
    { numRuns: 2_000 },
  );
});

test('the table stays within its limit after 100,000 names, and never mixes two of them up', () => {
  const names = new NameTable(1_000);
  const given = new Map<number, string>();
  for (let index = 0; index < 100_000; index++) {
    names.addressOf('often.example');
    given.set(names.addressOf(`n${index}.example`), `n${index}.example`);
  }
  const known = [...given].filter(([address]) => names.nameOf(address) !== undefined);
  expect(known).toHaveLength(999);
  for (const [address, name] of known) expect(names.nameOf(address)).toBe(name);
  expect(names.nameOf(names.addressOf('often.example'))).toBe('often.example');
});

test('the server answers over UDP and TCP, and closes a TCP connection that sends garbage', async () => {
  const names = new NameTable();
  const [udp, tcp] = [dnsOverUdp(names), dnsOverTcp(names)];
  udp.bind(0, '127.0.0.1');
  tcp.listen(0, '127.0.0.1');
  await Promise.all([once(udp, 'listening'), once(tcp, 'listening')]);
  const client = createSocket('udp4');
  client.send(Buffer.alloc(60_000), udp.address().port, '127.0.0.1');
  client.send(query('a.example'), udp.address().port, '127.0.0.1');
  let answer = (await once(client, 'message'))[0] as Buffer;
  if (codeOf(answer) === 1) answer = (await once(client, 'message'))[0] as Buffer;
  expect(addressIn(answer)).toBe(names.addressOf('a.example'));
  client.close();
  udp.close();

  const { port } = tcp.address() as AddressInfo;
  const framed = Buffer.concat([Buffer.of(0, query('a.example').length), query('a.example')]);
  const socket = connect(port, '127.0.0.1');
  socket.write(Buffer.concat([framed, framed.subarray(0, 5)]));
  const [one] = (await once(socket, 'data')) as [Buffer];
  expect(one.readUInt16BE(0)).toBe(one.length - 2);
  socket.write(framed.subarray(5));
  expect(await once(socket, 'data')).toEqual([one]);
  socket.write(Buffer.of(0xff, 0xff));
  await once(socket, 'close');
  tcp.close();
});
