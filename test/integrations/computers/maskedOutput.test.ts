import fc from 'fast-check';
import { maskedOutput } from '../../../integrations/computers/output/maskedOutput.ts';
import {
  type Gap,
  isOutput,
  noteOf,
  noteRecord,
  positionAfter,
} from '../../../integrations/computers/processes/records.ts';
import type { OutputKind, OutputRecord } from '../../../integrations/computers/types.ts';
import { createRedactor } from '../../../models/secrets/redactor.ts';
import { secretForms } from '../../../telemetry/secretForms.ts';

type Piece = [kind: 'stdout' | 'stderr' | 'gap' | 'wait', content: string];

/** The output of a process in these pieces, which can be read from any position. */
function processOf(pieces: readonly Piece[], { hasEnded = true } = {}) {
  const records: (OutputRecord | undefined)[] = [];
  let position = 0;
  for (const [kind, content] of pieces) {
    const record: OutputRecord | undefined =
      kind === 'wait'
        ? undefined
        : kind === 'gap'
          ? noteRecord('gap', position, { droppedBytes: Number(content) })
          : { kind, position, payload: Buffer.from(content, 'latin1') };
    records.push(record);
    if (record !== undefined) position = positionAfter(record);
  }
  if (hasEnded) {
    records.push(noteRecord('exit', position, { state: 'exited', exitCode: 0, signal: null, killedBy: null }));
  }
  async function* open({ after = 0 }: { after?: number }): AsyncGenerator<OutputRecord> {
    for (const record of records) {
      if (record === undefined) {
        await passing;
        continue;
      }
      const end = positionAfter(record);
      if (isOutput(record.kind) && end > after) {
        const passed = Math.max(0, after - record.position);
        yield { ...record, position: record.position + passed, payload: record.payload.subarray(passed) };
      } else if (record.kind === 'gap' && end > after) {
        const from = Math.max(record.position, after);
        yield noteRecord('gap', from, { droppedBytes: end - from });
      } else if (record.kind === 'exit') yield record;
    }
  }
  return { open, length: position };
}

/** A `wait` piece waits for this. */
let passing: Promise<void> = Promise.resolve();

interface Read {
  text: string;
  records: OutputRecord[];
}

/** Reads from a position on. Each byte is at its place in `text`; dropped ones are `~`. */
async function read(process: ReturnType<typeof processOf>, secrets: readonly string[], after = 0): Promise<Read> {
  const redactor = createRedactor(secrets.flatMap((secret) => secretForms(secret)));
  const records: OutputRecord[] = [];
  let text = '';
  let position = after;
  for await (const record of maskedOutput(process.open, async () => redactor, { after })) {
    records.push(record);
    // No byte is missing or comes twice.
    if (record.kind !== 'exit') expect(record.position).toBe(position);
    position = positionAfter(record);
    if (isOutput(record.kind)) text += Buffer.from(record.payload).toString('latin1');
    if (record.kind === 'gap') text += '~'.repeat(noteOf<Gap>(record).droppedBytes);
  }
  expect(position).toBe(process.length);
  return { text, records };
}

const secret = 'hunter2-hunter2';
const mask = '*'.repeat(secret.length);

test('a value is masked byte by byte, also if it is cut into several records', async () => {
  const whole = await read(processOf([['stdout', `a ${secret} b\n`]]), [secret]);
  expect(whole.text).toBe(`a ${mask} b\n`);
  const cut = processOf([
    ['stdout', `a ${secret.slice(0, 5)}`],
    ['stdout', secret.slice(5, 9)],
    ['stderr', 'err\n'],
    ['stdout', `${secret.slice(9)} b\n`],
  ]);
  const { text, records } = await read(cut, [secret]);
  expect(text).toBe(`a *********err\n****** b\n`);
  expect(records.map(({ kind }) => kind)).toEqual(['stdout', 'stdout', 'stderr', 'stdout', 'exit']);
  const encoded = Buffer.from(secret).toString('base64');
  expect((await read(processOf([['stdout', encoded]]), [secret])).text).toBe('*'.repeat(encoded.length));
  const umlauts = Buffer.from('pässwörter').toString('latin1');
  expect((await read(processOf([['stdout', `x${umlauts}y`]]), ['pässwörter'])).text).toBe(`x${'*'.repeat(12)}y`);
  expect((await read(processOf([['stdout', 'as it is']]), [])).text).toBe('as it is');
});

test('a reader that begins at any position gets the same text as one that reads from the beginning', async () => {
  const pieces: Piece[] = [
    ['stdout', `one ${secret} hun`],
    ['stderr', `two ${secret.slice(0, 7)}`],
    ['stdout', `ter ${secret}${secret}\n`],
    ['stderr', `${secret.slice(7)}\n`],
    ['stdout', 'three\n'],
  ];
  const process = processOf(pieces);
  const { text } = await read(process, [secret]);
  expect(text).not.toMatch(/hunter2|2-hun/);
  for (let after = 0; after <= process.length; after++) {
    expect((await read(process, [secret], after)).text).toBe(text.slice(after));
  }
});

test('at most a few bytes of a value are shown at each cut or gap', async () => {
  const values = ['abcabcdabcde', 'bcdbcdbcdbcd', `${'abcdefg'.repeat(14)}x`];
  const part = fc.oneof(
    fc.constantFrom(...values),
    fc.constantFrom(...values).map((value) => value.slice(0, 7)),
    fc.string({ unit: fc.constantFrom('a', 'b', 'c', ' '), maxLength: 5 }),
  );
  const text = fc.array(part, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''));
  const cuts = fc.array(fc.tuple(fc.nat(), fc.constantFrom('stdout', 'stderr', 'gap')), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(text, cuts, fc.nat(), async (whole, places, from) => {
      const at = places
        .map(([place, what]) => ({ place: place % (whole.length + 1), what }))
        .toSorted((a, b) => a.place - b.place);
      const pieces: Piece[] = [];
      /** For each byte of the output, its index in the text. Undefined for noise and gaps. */
      const raw: (number | undefined)[] = [];
      let begin = 0;
      for (const { place, what } of [...at, { place: whole.length, what: 'end' }]) {
        pieces.push(['stdout', whole.slice(begin, place)]);
        for (let index = begin; index < place; index++) raw.push(index);
        begin = place;
        if (what === 'stderr') {
          pieces.push(['stderr', 'noise']);
          raw.push(...Array.from({ length: 5 }, () => undefined));
        }
        if (what === 'gap') {
          const dropped = Math.min(3, whole.length - place);
          if (dropped === 0) continue;
          pieces.push(['gap', String(dropped)]);
          raw.push(...Array.from({ length: dropped }, () => undefined));
          begin = Math.max(begin, place + dropped);
        }
      }
      const process = processOf(pieces.filter(([kind, content]) => kind === 'gap' || content !== ''));
      const after = from % (process.length + 1);
      const { text: shown } = await read(process, values, after);
      const isShown = new Set<number>();
      raw.forEach((index, position) => {
        if (index !== undefined && position >= after && shown[position - after] !== '*') isShown.add(index);
      });
      for (const value of values) {
        for (let found = whole.indexOf(value); found >= 0; found = whole.indexOf(value, found + 1)) {
          const seen = Array.from(value, (_unit, index) => found + index).filter((index) => isShown.has(index));
          // Each cut in a value may show two bytes before it and two after it.
          const cutsIn = at.filter(({ place }) => place > found && place < found + value.length).length;
          expect(seen.length).toBeLessThanOrEqual(4 * cutsIn);
        }
      }
    }),
    { numRuns: 500 },
  );
});

test('the parts of a value beside a gap are masked, and other text is not', async () => {
  const process = processOf([
    ['stdout', `begin ${secret.slice(0, 6)}`],
    ['gap', '9000'],
    ['stdout', `${secret.slice(9)} end of standard output, with enough text after it to know\n`],
    ['stderr', 'Error: this is the reason\n'],
  ]);
  const { text } = await read(process, [secret]);
  expect(text).toBe(
    `begin ******${'~'.repeat(9_000)}****** end of standard output, with enough text after it to know\nError: this is the reason\n`,
  );
  for (const after of [0, 6, 9, 12, 13, 5_000, 9_011, 9_012, 9_013, 9_015, 9_030]) {
    expect((await read(process, [secret], after)).text).toBe(text.slice(after));
  }
});

test('the end of a value is masked although its beginning is too far back', async () => {
  const process = processOf([
    ['stdout', `begin ${secret.slice(0, 6)}`],
    ['stderr', `${'x'.repeat(40_000)}\n`],
    ['stdout', `${secret.slice(6)} end\n`],
  ]);
  const at = 12 + 40_001;
  expect((await read(process, [secret])).text.slice(at)).toBe('********* end\n');
  for (const after of [at, at + 1, at + 3, at - 1]) {
    const { text } = await read(process, [secret], after);
    expect(text.slice(-14)).toBe('********* end\n'.slice(after > at ? after - at : 0));
  }
});

test('a possible beginning of a value waits for a moment, and is masked if nothing follows', async () => {
  let go = () => {};
  passing = new Promise((resolve) => {
    go = resolve;
  });
  const process = processOf([
    ['stdout', `ready ${secret.slice(0, 8)}`],
    ['wait', ''],
    ['stdout', `${secret.slice(8)}\nhu`],
    ['wait', ''],
  ]);
  const redactor = createRedactor(secretForms(secret));
  const records = maskedOutput(process.open, async () => redactor, { follow: true });
  const next = async () => Buffer.from((await records.next()).value?.payload ?? '').toString();
  expect([await next(), await next()]).toEqual(['ready ', '********']);
  go();
  // Two bytes are shown once the process has ended or nothing follows.
  expect([await next(), await next()]).toEqual(['*******\n', 'hu']);
  expect((await records.next()).value?.kind).toBe('exit');
});

test('a new secret is masked in output that is being read', async () => {
  const known = createRedactor(secretForms('another-one'));
  let asked = 0;
  const now = Date.now();
  const clock = jest.spyOn(Date, 'now').mockImplementation(() => now + asked * 10_000);
  const masks = async () => {
    asked++;
    return asked === 1 ? known : createRedactor(secretForms(secret));
  };
  try {
    const process = processOf([
      ['stdout', 'begin\n'],
      ['stdout', `${secret}\n`],
    ]);
    const text: string[] = [];
    for await (const { kind, payload } of maskedOutput(process.open, masks)) {
      if (isOutput(kind)) text.push(Buffer.from(payload).toString());
      clock.mockImplementation(() => now + 60_000);
    }
    expect(text.join('')).toBe(`begin\n${mask}\n`);
  } finally {
    clock.mockRestore();
  }
});

test('a reader that stops while it waits aborts the output of the process', async () => {
  const signals: AbortSignal[] = [];
  async function* open({ signal }: { signal?: AbortSignal }): AsyncGenerator<OutputRecord> {
    if (signal !== undefined) signals.push(signal);
    yield { kind: 'stdout' as OutputKind, position: 0, payload: Buffer.from(secret.slice(0, 5)) };
    await new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
  }
  const redactor = createRedactor(secretForms(secret));
  for await (const { payload } of maskedOutput(open, async () => redactor, { follow: true })) {
    expect(Buffer.from(payload).toString()).toBe('*****');
    break;
  }
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
});
