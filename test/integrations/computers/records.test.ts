import fc from 'fast-check';
import {
  encodeRecord,
  heartbeat,
  InvalidRecord,
  maxPayloadBytes,
  noteOf,
  noteRecord,
  positionAfter,
  RecordDecoder,
} from '../../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../../integrations/computers/types.ts';

const records = fc.array(
  fc.record<OutputRecord>({
    kind: fc.constantFrom('stdout', 'stderr', 'pty', 'resize', 'gap', 'exit'),
    position: fc.nat({ max: Number.MAX_SAFE_INTEGER }).map((n) => n % 2 ** 48),
    payload: fc.uint8Array({ maxLength: 64 }),
  }),
  { maxLength: 12 },
);

function decode(chunks: Uint8Array[]): OutputRecord[] {
  const decoder = new RecordDecoder();
  const decoded = chunks.flatMap((chunk) => [...decoder.push(chunk)]);
  expect(decoder.isWithinRecord).toBe(false);
  return decoded.map((record) => ({ ...record, payload: Uint8Array.from(record.payload) }));
}

it('the decoder returns the encoded records wherever the bytes are cut, and skips heartbeats', () => {
  fc.assert(
    fc.property(
      records,
      fc.array(fc.nat({ max: 2_000 }), { maxLength: 20 }),
      fc.nat({ max: 12 }),
      (given, cuts, beat) => {
        const parts = given.map(encodeRecord);
        parts.splice(beat, 0, heartbeat);
        const bytes = Buffer.concat(parts);
        const points = [0, ...cuts.filter((cut) => cut < bytes.length).toSorted((a, b) => a - b), bytes.length];
        expect(decode(points.slice(1).map((end, at) => bytes.subarray(points[at], end)))).toEqual(given);
      },
    ),
  );
});

it('the decoder reads records that arrive byte by byte', () => {
  const given: OutputRecord[] = [
    { kind: 'stdout', position: 0, payload: Uint8Array.from([1, 2, 3]) },
    { kind: 'pty', position: 3, payload: new Uint8Array(0) },
  ];
  const bytes = Buffer.concat(given.map(encodeRecord));
  expect(decode([...bytes].map((byte) => Uint8Array.from([byte])))).toEqual(given);
});

it('the decoder throws on invalid bytes and on too long records', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const decoder = new RecordDecoder();
      try {
        for (const { payload } of decoder.push(bytes)) expect(payload.length).toBeLessThanOrEqual(maxPayloadBytes);
      } catch (error) {
        expect(error).toBeInstanceOf(InvalidRecord);
      }
    }),
  );
  const tooLong = encodeRecord({ kind: 'stdout', position: 0, payload: new Uint8Array(maxPayloadBytes + 1) });
  expect(() => [...new RecordDecoder().push(tooLong)]).toThrow(InvalidRecord);
  expect(() => [...new RecordDecoder().push(Buffer.from([0, ...Buffer.alloc(12, 1)]))]).toThrow(InvalidRecord);
});

it('positionAfter returns the position of the next output', () => {
  expect(positionAfter({ kind: 'stderr', position: 7, payload: Buffer.from('abc') })).toBe(10);
  expect(positionAfter(noteRecord('gap', 7, { droppedBytes: 100 }))).toBe(107);
  expect(positionAfter(noteRecord('resize', 7, { cols: 80, rows: 24 }))).toBe(7);
  expect(noteOf(noteRecord('resize', 7, { cols: 80, rows: 24 }))).toEqual({ cols: 80, rows: 24 });
});
