import { isOutput, positionAfter, RecordDecoder } from '../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../integrations/computers/types.ts';
import type { RouteDeps } from '../frame/deps.ts';

/** The records of a log in the store, from a position on. */
export async function* storedRecords(
  storage: Pick<RouteDeps['storage'], 'read'>,
  key: string,
  after: number,
): AsyncGenerator<OutputRecord> {
  const decoder = new RecordDecoder();
  const bytes = await storage.read(key);
  try {
    for await (const chunk of bytes) {
      for (const record of decoder.push(chunk as Buffer)) {
        const isOver = record.kind !== 'exit' && positionAfter(record) <= after;
        if (!isOver) yield from(record, after);
      }
    }
  } finally {
    bytes.destroy();
  }
}

/** The part of a record that comes after a position. */
function from(record: OutputRecord, after: number): OutputRecord {
  const { kind, position, payload } = record;
  if (!isOutput(kind) || position >= after) return record;
  return { kind, position: after, payload: payload.subarray(after - position) };
}
