import { PassThrough, Writable } from 'node:stream';
import { Outputs } from '../../../integrations/computers/agent/processes/outputs.ts';
import { MessageDecoder, messageKind } from '../../../integrations/computers/protocol/messages.ts';

/** The agent's outputs on streams that the test writes to. `writes` has the messages to the holder. */
function outputs() {
  const writes: Buffer[] = [];
  const told = new Writable({
    write(chunk: Buffer, _encoding, done) {
      writes.push(chunk);
      done();
    },
  });
  const stream = Object.assign(told, { resume: () => told });
  const [out, err] = [new PassThrough(), new PassThrough()];
  const all = new Outputs(stream as never);
  all.add(out, messageKind.stdout);
  all.add(err, messageKind.stderr);
  return { writes, told, out, err, all };
}

const messagesIn = (writes: Buffer[]) =>
  writes
    .flatMap((bytes) => [...new MessageDecoder().push(bytes)])
    .map(({ kind, payload }) => ({ kind, text: payload.toString() }));

test('the first output is sent at once, and a flood of tiny writes in a few messages without loss', async () => {
  const { writes, told, out, err, all } = outputs();
  out.write('first');
  await new Promise((resolve) => setImmediate(resolve));
  expect(messagesIn(writes)).toEqual([{ kind: messageKind.stdout, text: 'first' }]);
  const each = 10_000;
  for (let count = 0; count < each; count++) {
    // The event loop reads a byte from each stream in turn.
    out.emit('data', Buffer.from('a'));
    err.emit('data', Buffer.from('b'));
  }
  for (const source of [out, err]) source.destroy();
  all.leaderEnded({ exitCode: 0, signal: null });
  await new Promise((resolve) => told.once('finish', resolve));
  const messages = messagesIn(writes);
  const textOf = (kind: number) => messages.map((message) => (message.kind === kind ? message.text : '')).join('');
  expect(textOf(messageKind.stdout)).toBe(`first${'a'.repeat(each)}`);
  expect(textOf(messageKind.stderr)).toBe('b'.repeat(each));
  expect(messages.at(-1)?.kind).toBe(messageKind.exit);
  expect(writes.length).toBeLessThan(each / 50);
});

test('large output is sent without delay', async () => {
  const { writes, out } = outputs();
  for (let count = 0; count < 4; count++) out.emit('data', Buffer.alloc(65_536, 'x'));
  expect(messagesIn(writes).map(({ text }) => text.length)).toEqual(Array(8).fill(32_768));
});
