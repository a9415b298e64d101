import { duplexPair } from 'node:stream';
import { RfbClient, RfbViolation } from '../../../integrations/desktops/rfb/rfbClient.ts';
import { ConnectionEnded } from '../../../integrations/desktops/rfb/wire.ts';

const greeting = Buffer.from('RFB 003.008\n');
const none = Buffer.from([1, 1]);
const fine = Buffer.from([0, 0, 0, 0]);

function init(width: number, height: number, nameLength = 0): Buffer {
  const message = Buffer.alloc(24);
  message.writeUInt16BE(width, 0);
  message.writeUInt16BE(height, 2);
  message.writeUInt32BE(nameLength, 20);
  return message;
}

function rectangle(x: number, y: number, width: number, height: number, encoding = 0): Buffer {
  const head = Buffer.alloc(12);
  for (const [at, value] of [x, y, width, height].entries()) head.writeUInt16BE(value, at * 2);
  head.writeInt32BE(encoding, 8);
  return head;
}

const update = (count: number) => Buffer.from([0, 0, count >> 8, count & 255]);

/** A client of a server that sends these bytes one by one, and then closes. */
function clientOf(...said: Buffer[]): Promise<RfbClient> {
  const [inside, outside] = duplexPair();
  inside.resume();
  void (async () => {
    for (const byte of Buffer.concat(said)) inside.write(Buffer.from([byte]));
    inside.end();
  })();
  return RfbClient.open(outside);
}

const opened = [greeting, none, fine];

test('a picture is assembled from updates, and bells and clipboard texts are ignored', async () => {
  const client = await clientOf(
    ...opened,
    init(2, 2),
    Buffer.from([2, 3, 0, 0, 0, 0, 0, 0, 1, 65]), // a bell, and a text
    update(1),
    rectangle(0, 1, 2, 1),
    Buffer.from([1, 1, 1, 0, 2, 2, 2, 0]),
    update(1),
    rectangle(0, 0, 2, 1),
    Buffer.from([3, 3, 3, 0, 4, 4, 4, 0]),
  );
  const { width, height, pixels } = await client.picture();
  expect([width, height]).toEqual([2, 2]);
  expect([...pixels]).toEqual([3, 3, 3, 0, 4, 4, 4, 0, 1, 1, 1, 0, 2, 2, 2, 0]);
});

test.each<[string, Buffer[]]>([
  ['another protocol', [Buffer.from('HTTP/1.1 200')]],
  ['a password', [greeting, Buffer.from([1, 2])]],
  ['no entry', [greeting, none, Buffer.from([0, 0, 0, 1])]],
  ['a name without end', [...opened, init(2, 2, 0xffffffff)]],
  ['no screen', [...opened, init(0, 0)]],
  ['a screen that is too large', [...opened, init(65_535, 65_535)]],
])('a server that offers %s is refused', async (_, said) => {
  await expect(clientOf(...said)).rejects.toThrow(RfbViolation);
});

test.each<[string, Buffer[]]>([
  ['draws beside its screen', [update(1), rectangle(1, 0, 2, 2)]],
  ['draws nothing', [update(1), rectangle(0, 0, 0, 2)]],
  ['uses an encoding that was not asked for', [update(1), rectangle(0, 0, 2, 2, 16)]],
  ['says what is not known', [Buffer.from([77])]],
  ['sends a text without end', [Buffer.from([3, 0, 0, 0, 0xff, 0xff, 0xff, 0xff])]],
])('the client fails if a server %s', async (_, said) => {
  const client = await clientOf(...opened, init(2, 2), ...said);
  await expect(client.picture()).rejects.toThrow(RfbViolation);
});

test('the client fails if the server closes the connection', async () => {
  const client = await clientOf(...opened, init(2, 2), update(1), rectangle(0, 0, 2, 2));
  await expect(client.picture()).rejects.toThrow(ConnectionEnded);
  await expect(clientOf(greeting)).rejects.toThrow(ConnectionEnded);
});
