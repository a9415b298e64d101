import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { collectOutput } from '../../../integrations/computers/output/collectOutput.ts';
import { TextPieces } from '../../../integrations/computers/output/textPieces.ts';
import { noteRecord } from '../../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../../integrations/computers/types.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const bytesOf = ({ content }: ReturnType<TextPieces['rest']>[number]) =>
  'text' in content ? Buffer.from(content.text) : Buffer.from(content.base64, 'base64');

test('text pieces have whole characters wherever the bytes are cut, and lose nothing', () => {
  const text = fc
    .array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('€', '😀', 'é')))
    .map((all) => all.join(''));
  fc.assert(
    fc.property(text, fc.array(fc.nat(12)), (whole, cuts) => {
      const bytes = Buffer.from(whole.toWellFormed());
      const pieces = new TextPieces();
      const given = [];
      let at = 0;
      for (const length of [...cuts, bytes.length]) {
        given.push(...pieces.push(1_000 + at, bytes.subarray(at, at + length)));
        at = Math.min(bytes.length, at + length);
      }
      expect(given.every(({ content }) => 'text' in content)).toBe(true);
      expect(Buffer.concat([...given, ...pieces.rest()].map(bytesOf))).toEqual(bytes);
      let position = 1_000;
      for (const piece of given) {
        expect(piece.position).toBe(position);
        position = piece.end;
        expect(piece.end - piece.position).toBe(bytesOf(piece).length);
      }
    }),
  );
});

test('bytes that are not text pass unchanged', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 9 })), (chunks) => {
      const pieces = new TextPieces();
      let at = 0;
      const given = chunks.flatMap((chunk) => {
        at += chunk.length;
        return pieces.push(at - chunk.length, chunk);
      });
      expect(Buffer.concat([...given, ...pieces.rest()].map(bytesOf))).toEqual(Buffer.concat(chunks));
    }),
  );
});

describe('collectOutput', () => {
  async function* records(...all: OutputRecord[]): AsyncGenerator<OutputRecord> {
    yield* all;
  }
  const out = (position: number, text: string, kind: OutputRecord['kind'] = 'stdout'): OutputRecord => ({
    kind,
    position,
    payload: Buffer.from(text),
  });
  const exit = noteRecord('exit', 9, { state: 'exited', exitCode: 3, signal: null, killedBy: null });

  test('returns both streams and the end of the process', async () => {
    const all = records(out(0, 'one '), out(4, 'bad', 'stderr'), out(7, 'two'), exit);
    expect(await collectOutput(all, { maxBytes: 100 })).toEqual({
      stdout: 'one two',
      stderr: 'bad',
      truncated: false,
      exit: { state: 'exited', exitCode: 3, signal: null, killedBy: null },
      position: 9,
    });
  });

  test('keeps the beginning and the end of a too long output, in bounded memory', async () => {
    async function* endless(): AsyncGenerator<OutputRecord> {
      yield out(0, 'begin');
      const payload = Buffer.alloc(65_536, 'x');
      for (let count = 0; count < 2_000; count++) yield { kind: 'stdout', position: 5 + count * 65_536, payload };
      yield out(5 + 2_000 * 65_536, 'end');
    }
    const before = process.memoryUsage().arrayBuffers;
    const { stdout, truncated } = await collectOutput(endless(), { maxBytes: 1_000 });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1_048_576);
    const leftOut = 8 + 2_000 * 65_536 - 1_000;
    expect([truncated, stdout.slice(0, 6), stdout.slice(-4)]).toEqual([true, 'beginx', 'xend']);
    expect(stdout).toContain(`x\n[${leftOut} bytes are left out here]\nx`);
  });

  test('needs no extra memory for many small records', async () => {
    const maxBytes = 1_048_576;
    async function* bytewise(): AsyncGenerator<OutputRecord> {
      const payload = Buffer.from('x');
      for (let position = 0; position < 2 * maxBytes; position++) {
        yield { kind: position % 2 === 0 ? 'stdout' : 'stderr', position, payload };
      }
    }
    const heldBytes = () => {
      collectGarbage();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const before = heldBytes();
    let most = 0;
    let count = 0;
    const onRecord = () => {
      // Measure near the end, when it holds the most.
      if (++count === 2 * maxBytes - 10) most = heldBytes();
    };
    const { stdout, stderr, truncated } = await collectOutput(bytewise(), { maxBytes, onRecord });
    expect([stdout.length, stderr.length, truncated]).toEqual([maxBytes, maxBytes, false]);
    expect(most - before).toBeLessThan(16 * 1_048_576);
  });

  test('returns the same text however the output is cut into records', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat({ max: 40 }), { maxLength: 30 }),
        fc.nat({ max: 60 }),
        async (cuts, maxBytes) => {
          const total = cuts.reduce((sum, cut) => sum + cut, 0);
          const whole = Buffer.from(Array.from({ length: total }, (_, at) => 97 + (at % 26)));
          let position = 0;
          const all = cuts.map((cut): OutputRecord => {
            const payload = whole.subarray(position, position + cut);
            position += cut;
            return { kind: 'stdout', position: position - cut, payload };
          });
          const each = Math.ceil(maxBytes / 2);
          const expected =
            total <= 2 * each
              ? whole.toString()
              : `${whole.subarray(0, each)}\n[${total - 2 * each} bytes are left out here]\n${whole.subarray(total - each)}`;
          expect((await collectOutput(records(...all), { maxBytes })).stdout).toBe(expected);
        },
      ),
    );
  });

  test('marks the place where the host has dropped output', async () => {
    const all = records(out(0, 'begin'), noteRecord('gap', 5, { droppedBytes: 70 }), out(75, 'end'), exit);
    expect(await collectOutput(all, { maxBytes: 100 })).toMatchObject({
      stdout: 'begin\n[70 bytes are left out here]\nend',
      truncated: true,
    });
  });
});
