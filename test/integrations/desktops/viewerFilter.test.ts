import { ViewerFilter, ViewerViolation } from '../../../integrations/desktops/rfb/viewerFilter.ts';

const greeting = Buffer.from([...Buffer.from('RFB 003.008\n'), 1, 0]);
const bytes = (...values: number[]) => Buffer.from(values);

const messages = {
  pixelFormat: bytes(0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0),
  update: bytes(3, 1, 0, 0, 0, 0, 0, 9, 0, 9),
  continuous: bytes(150, 1, 0, 0, 0, 0, 0, 9, 0, 9),
  fence: bytes(248, 0, 0, 0, 0x80, 0, 0, 1, 3, 7, 8, 9),
};
const controls = {
  key: bytes(4, 1, 0, 0, 0, 0, 0, 0x58),
  pointer: bytes(5, 1, 0, 1, 0, 1),
  cutText: bytes(6, 0, 0, 0, 0, 0, 0, 2, 4, 4),
  extendedCutText: bytes(6, 0, 0, 0, 0xff, 0xff, 0xff, 0xfc, 4, 4, 4, 4),
  qemuKey: bytes(255, 0, 0, 1, 0, 0, 0, 0x58, 0, 0, 0, 0x2d),
};
const resize = Buffer.concat([bytes(251, 0, 4, 0, 4, 0, 1, 0), Buffer.alloc(16, 4)]);

function encodings(...list: number[]): Buffer {
  const message = Buffer.alloc(4 + 4 * list.length);
  message.writeUInt8(2);
  message.writeUInt16BE(list.length, 2);
  for (const [at, encoding] of list.entries()) message.writeInt32BE(encoding, 4 + 4 * at);
  return message;
}

/** A filter after the greeting. */
function greeted(mayControl: boolean): ViewerFilter {
  const filter = new ViewerFilter(() => mayControl);
  filter.push(greeting);
  return filter;
}

const everything = Buffer.concat([
  ...Object.values(controls),
  ...Object.values(messages),
  resize,
  ...Object.values(controls),
]);
const looking = Buffer.concat(Object.values(messages));

test.each([1, 2, 3, 5, 7, 11, everything.length])('input without control is dropped, in pieces of %i bytes', (size) => {
  const filter = greeted(false);
  const passed: Buffer[] = [];
  for (let at = 0; at < everything.length; at += size) passed.push(filter.push(everything.subarray(at, at + size)));
  expect(Buffer.concat(passed)).toEqual(looking);
});

test('a viewer with control sends everything except a resize', () => {
  const all = Buffer.concat([...Object.values(controls), looking, ...Object.values(controls)]);
  expect(greeted(true).push(everything)).toEqual(all);
});

test('a viewer that loses control sends no input from the next message on', () => {
  let mayControl = true;
  const filter = new ViewerFilter(() => mayControl);
  filter.push(greeting);
  expect(filter.push(Buffer.concat([controls.key, controls.key.subarray(0, 4)]))).toEqual(controls.key);
  mayControl = false;
  expect(filter.push(controls.key.subarray(4))).toHaveLength(0);
});

test('a viewer always shares the desktop', () => {
  const filter = new ViewerFilter(() => true);
  expect(filter.push(greeting)).toEqual(Buffer.from([...Buffer.from('RFB 003.008\n'), 1, 1]));
});

test('encodings that change the format of messages are removed', () => {
  // Extended mouse buttons, XVP, H.264, and an unknown encoding.
  expect(greeted(false).push(encodings(7, -316, -309, 50, 12_345, -223, -26, -254))).toEqual(
    encodings(7, -223, -26, -254),
  );
});

test('a viewer without the clipboard only gets notices of it, with any encodings', () => {
  const extended = 0xc0a1e5ce | 0;
  // Allows notices of texts, and no text without a request.
  const only = bytes(6, 0, 0, 0, 0xff, 0xff, 0xff, 0xf8, 0x09, 0, 0, 1, 0, 0, 0, 0);
  const filter = new ViewerFilter(() => false, { hasClipboard: false });
  expect(filter.push(greeting)).toEqual(
    Buffer.concat([Buffer.from('RFB 003.008\n'), bytes(1, 1), encodings(extended), only]),
  );
  expect(filter.push(encodings(7, -223))).toEqual(Buffer.concat([encodings(7, -223, extended), only]));
  expect(filter.push(encodings(extended, 7))).toEqual(Buffer.concat([encodings(7, extended), only]));
  // The viewer's own capabilities and its request for the text are dropped.
  expect(filter.push(bytes(6, 0, 0, 0, 0xff, 0xff, 0xff, 0xf8, 0x11, 0, 0, 1, 1, 0, 0, 0))).toHaveLength(0);
  expect(filter.push(bytes(6, 0, 0, 0, 0xff, 0xff, 0xff, 0xfc, 2, 0, 0, 1))).toHaveLength(0);
});

test.each([
  ['another version', Buffer.from('RFB 003.003\n')],
  ['another kind of security', Buffer.from('RFB 003.008\n\u0002')],
  ['no RFB', Buffer.from('GET / HTTP/1.1\r\n')],
])('a greeting with %s is refused', (_, said) => {
  expect(() => new ViewerFilter(() => true).push(said)).toThrow(ViewerViolation);
});

test.each([
  ['an unknown message', bytes(7)],
  ['a name of every object', bytes(99)],
  ['a message of XVP', bytes(250, 0, 1, 2)],
  ['sound', bytes(255, 1, 0, 0)],
  ['a text without end', bytes(6, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff)],
  ['an extended text without end', bytes(6, 0, 0, 0, 0x80, 0, 0, 0)],
  ['encodings without end', bytes(2, 0, 0xff, 0xff)],
  ['screens without end', bytes(251, 0, 4, 0, 4, 0, 255, 0)],
])('the message "%s" is refused', (_, said) => {
  expect(() => greeted(true).push(said)).toThrow(ViewerViolation);
});
