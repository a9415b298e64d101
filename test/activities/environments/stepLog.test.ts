import { StepLog } from '../../../activities/environments/stepLog.ts';
import {
  type Gap,
  noteOf,
  noteRecord,
  positionAfter,
  RecordDecoder,
} from '../../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../../integrations/computers/types.ts';

const stored = (log: StepLog) => [...new RecordDecoder().push(log.encoded())];
const output = (position: number, text: string, kind: 'stdout' | 'stderr' = 'stdout'): OutputRecord => ({
  kind,
  position,
  payload: Buffer.from(text),
});

function filled(records: readonly OutputRecord[]): StepLog {
  const log = new StepLog();
  for (const record of records) log.push(record);
  return log;
}

test('A short log is stored as it is, without its end', () => {
  const records = [output(0, 'one\n'), output(4, 'two\n', 'stderr')];
  const exit = { state: 'exited', exitCode: 1, signal: null, killedBy: null } as const;
  const log = filled([...records, noteRecord('exit', 8, exit)]);
  expect(stored(log)).toEqual(records);
  expect(log.position).toBe(8);
  expect(log.last().toString()).toBe('one\ntwo\n');
});

test('A log without output is empty', () => {
  expect(filled([]).position).toBe(0);
  expect(filled([]).encoded()).toEqual(Buffer.alloc(0));
});

test('Of a long log, the beginning and the end are stored at their positions, and a gap says what is left out', () => {
  const piece = 'x'.repeat(50_000);
  const count = 100;
  const log = filled(Array.from({ length: count }, (_, index) => output(index * piece.length, piece)));
  const records = stored(log);
  let position = 0;
  for (const record of records) {
    expect(record.position).toBe(position);
    position = positionAfter(record);
  }
  expect(position).toBe(count * piece.length);
  expect(log.position).toBe(position);
  const gaps = records.filter(({ kind }) => kind === 'gap');
  expect(gaps).toHaveLength(1);
  const kept = records.filter(({ kind }) => kind === 'stdout').length * piece.length;
  expect(gaps.map((gap) => noteOf<Gap>(gap).droppedBytes)).toEqual([position - kept]);
  expect(kept).toBeLessThanOrEqual(1_048_576);
  expect(kept).toBeGreaterThan(900_000);
  expect(log.last()).toHaveLength(4_096);
});

test('A gap in the output itself stays', () => {
  const log = filled([output(0, 'a'), noteRecord('gap', 1, { droppedBytes: 9 }), output(10, 'b')]);
  expect(stored(log).map(({ kind, position }) => [kind, position])).toEqual([
    ['stdout', 0],
    ['gap', 1],
    ['stdout', 10],
  ]);
  expect(log.last().toString()).toBe('ab');
});
