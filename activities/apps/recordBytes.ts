import { encodeRecord } from '../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../integrations/computers/types.ts';

/** A log as it is kept: the records as they come from the computer. */
export async function* recordBytes(records: AsyncIterable<OutputRecord>): AsyncGenerator<Buffer> {
  for await (const record of records) yield encodeRecord(record);
}
