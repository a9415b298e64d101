import type { Duplex } from 'node:stream';
import fc from 'fast-check';
import { type NetworkedComputer, networkedComputer } from '../../support/computerNetwork.ts';
import { temporaryFolder } from '../../support/folders.ts';

let computer: NetworkedComputer;
beforeAll(async () => {
  const folder = temporaryFolder();
  computer = await networkedComputer(folder, `${folder}/none.sock`);
});
afterAll(() => computer[Symbol.asyncDispose]());

const encode = (name: string) =>
  Buffer.concat([...name.split('.').map((part) => Buffer.from([part.length, ...Buffer.from(part)])), Buffer.of(0)]);

function query(name: Buffer | string, type = 1, options: { flags?: number; count?: number; class?: number } = {}) {
  const { flags = 0x0100, count = 1 } = options;
  const head = Buffer.from([0xab, 0xcd, flags >> 8, flags & 255, 0, count, 0, 0, 0, 0, 0, 0]);
  const encoded = typeof name === 'string' ? encode(name) : name;
  return Buffer.concat([head, encoded, Buffer.from([0, type, 0, options.class ?? 1])]);
}

const framed = (message: Buffer) => Buffer.concat([Buffer.of(message.length >> 8, message.length & 255), message]);

/** The agent's answers over TCP to these queries, up to the one by which it ends the connection. */
async function ask(...queries: Buffer[]): Promise<Buffer[]> {
  const answers: Buffer[] = [];
  const socket = await computer.dial(53);
  socket.on('error', () => undefined);
  const sending = send(socket, queries);
  let held: Buffer = Buffer.alloc(0);
  try {
    for await (const piece of socket) {
      held = Buffer.concat([held, piece as Buffer]);
      while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
        const end = 2 + held.readUInt16BE(0);
        answers.push(held.subarray(2, end));
        held = held.subarray(end);
      }
      if (answers.length === queries.length) break;
    }
  } catch {
    // The agent has cut the connection off.
  }
  socket.destroy();
  await sending;
  return answers;
}

/** Without pauses, because the agent answers one query after the other. */
async function send(socket: Duplex, queries: Buffer[]): Promise<void> {
  const all = Buffer.concat(queries.map(framed));
  await new Promise<void>((resolve) => socket.write(all, () => resolve()));
}

const answerOf = async (...given: Parameters<typeof query>) => (await ask(query(...given)))[0];
const codeOf = (answer: Buffer | undefined) => answer && answer.readUInt16BE(2) & 15;
const countOf = (answer: Buffer | undefined) => answer?.readUInt16BE(6);
const addressIn = (answer: Buffer | undefined) => answer?.readUInt32BE(answer.length - 4) ?? 0;
const reverseOf = (address: number) =>
  `${[24, 16, 8, 0]
    .map((bits) => (address >>> bits) & 255)
    .toReversed()
    .join('.')}.in-addr.arpa`;
const [low, high] = [0x7f_40_00_00, 0x7f_7f_ff_ff];

test('a name in any case gets the same address of the table, which leads back to the name', async () => {
  const answer = await answerOf('Api.Example.COM');
  expect(answer?.readUInt16BE(0)).toBe(0xabcd);
  expect([codeOf(answer), countOf(answer)]).toEqual([0, 1]);
  const address = addressIn(answer);
  expect(address).toBeGreaterThanOrEqual(low);
  expect(address).toBeLessThanOrEqual(high);
  expect(addressIn(await answerOf('api.example.com'))).toBe(address);
  const found = await answerOf(reverseOf(address), 12);
  expect(found?.subarray(-17)).toEqual(encode('api.example.com'));
  await using other = await networkedComputer(temporaryFolder(), '/none');
  const { stdout } = await other.run('getent ahosts api.example.com | head -n 1');
  expect(stdout.split(' ')[0]).toBe([24, 16, 8, 0].map((bits) => (address >>> bits) & 255).join('.'));
});

test('localhost, reverse lookups and record types without data are answered', async () => {
  for (const name of ['localhost', 'app.localhost']) expect(addressIn(await answerOf(name))).toBe(0x7f_00_00_01);
  expect((await answerOf('localhost', 28))?.subarray(-16)).toEqual(Buffer.from([...Array(15).fill(0), 1]));
  for (const type of [28, 16, 15, 33, 65, 255]) {
    const answer = await answerOf('a.example', type);
    expect([codeOf(answer), countOf(answer)]).toEqual([0, 0]);
  }
  expect(codeOf(await answerOf('1.0.0.127.in-addr.arpa', 12))).toBe(3);
});

test('a malformed or unsupported query is refused or ends its connection', async () => {
  expect(await ask(Buffer.alloc(11))).toEqual([]);
  expect(await ask(query('a.example', 1, { flags: 0x8180 }))).toEqual([]);
  expect(await ask(Buffer.concat([query('a.example'), Buffer.alloc(600)]))).toEqual([]);
  expect(codeOf(await answerOf('a.example', 1, { flags: 0x2800 }))).toBe(4);
  expect(codeOf(await answerOf('a.example', 1, { count: 2 }))).toBe(1);
  expect(codeOf(await answerOf(Buffer.of(0xc0, 0x0c)))).toBe(1);
  expect(codeOf(await answerOf(Array(5).fill('a'.repeat(60)).join('.')))).toBe(1);
  expect(codeOf(await answerOf(Buffer.of(0)))).toBe(1);
  expect(codeOf(await answerOf('a.example', 1, { class: 3 }))).toBe(3);
  for (const name of ['a b.example', 'a\r\nhost: x', '-a.example', 'a.\0.b'])
    expect(codeOf(await answerOf(name))).toBe(3);
});

test('random queries over UDP and TCP cause no answer that is too long, and others are answered', async () => {
  const mutated = fc.tuple(fc.uint8Array({ maxLength: 480 }), fc.boolean(), fc.nat(40)).map(([bytes, isQuery, at]) => {
    const whole = Buffer.from(isQuery ? Buffer.concat([query('a.example'), bytes]) : bytes);
    if (whole.length > at) whole[at] = (whole[at] ?? 0) ^ 0xff;
    return whole;
  });
  await fc.assert(
    fc.asyncProperty(mutated, async (bytes) => {
      const [answer] = await ask(bytes);
      expect(answer?.length ?? 0).toBeLessThanOrEqual(600);
    }),
    { numRuns: 500 },
  );
  const flood = `exec 3<>/dev/udp/127.0.0.1/53; for i in {1..200}; do head -c $i /dev/urandom >&3; done`;
  expect(await computer.run(`${flood}; getent ahosts after.example`)).toMatchObject({ code: 0 });
});

test('the table stays within its limit after 100,000 names, and never mixes two of them up', async () => {
  const given = new Map<number, string>();
  for (let round = 0; round < 100; round++) {
    const names = ['often.example', ...Array.from({ length: 1_000 }, (_, at) => `n${round * 1_000 + at}.example`)];
    const answers = await ask(...names.map((name) => query(name)));
    for (const [at, answer] of answers.entries()) given.set(addressIn(answer), names[at] ?? '');
  }
  const addresses = [...given.keys()];
  const answers = await ask(...addresses.map((address) => query(reverseOf(address), 12)));
  const known = addresses.filter((_, at) => codeOf(answers[at]) === 0);
  expect(known.length).toBeGreaterThan(19_000);
  expect(known.length).toBeLessThanOrEqual(20_000);
  for (const [at, answer] of answers.entries()) {
    const name = encode(given.get(addresses[at] ?? 0) ?? '');
    if (codeOf(answer) === 0) expect(answer.subarray(-name.length)).toEqual(name);
  }
  expect([...known].map((address) => given.get(address))).toContain('often.example');
});

test('a connection may send a query in pieces, and is closed when it sends garbage', async () => {
  const socket = await computer.dial(53);
  const message = framed(query('a.example'));
  socket.write(Buffer.concat([message, message.subarray(0, 5)]));
  const next = () => new Promise<Buffer>((resolve) => socket.once('data', resolve));
  const one = await next();
  expect(one.readUInt16BE(0)).toBe(one.length - 2);
  socket.write(message.subarray(5));
  expect(await next()).toEqual(one);
  socket.write(Buffer.of(0xff, 0xff));
  await new Promise((resolve) => socket.once('end', resolve));
  socket.destroy();
});
