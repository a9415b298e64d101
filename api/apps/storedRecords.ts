import { positionAfter, RecordDecoder } from '../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../integrations/computers/types.ts';
import { recordFrom } from '../computers/processes/sendText.ts';
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
        if (!isOver) yield recordFrom(record, after);
      }
    }
  } finally {
    bytes.destroy();
  }
}
