import { setTimeout as sleep } from 'node:timers/promises';
import { DomainError } from '../../../base/errors.ts';
import type { OutputRequest } from '../hostClient.ts';
import { positionAfter, RecordDecoder } from '../processes/records.ts';
import { connectionLost } from '../protocol/holderHttp.ts';
import type { OutputRecord } from '../types.ts';
import type { Requests } from './requests.ts';

/** How many times in a row a connection may be lost without a record in between. */
const maxFailures = 5;

/** Reads a process's output, and connects again when a connection is lost. */
export async function* followOutput(
  requests: Requests,
  processPath: string,
  { after = 0, follow = false, signal }: OutputRequest,
): AsyncGenerator<OutputRecord, void, undefined> {
  let position = after;
  for (let failures = 0; ; failures++) {
    try {
      for await (const record of connection(requests, processPath, { after: position, follow, signal })) {
        failures = -1;
        position = positionAfter(record);
        yield record;
        if (record.kind === 'exit') return;
      }
      if (!follow) return;
      // A holder that ends every connection silently is broken.
      if (failures >= maxFailures) throw connectionLost();
    } catch (error) {
      signal?.throwIfAborted();
      if (!isLost(error) || failures >= maxFailures) throw error;
    }
    // The connection was cut, perhaps because we were slow.
    await sleep(50 * 2 ** Math.max(0, failures), undefined, { signal }).catch(() => signal?.throwIfAborted());
  }
}

async function* connection(
  requests: Requests,
  processPath: string,
  { after, follow, signal }: { after: number; follow: boolean; signal: AbortSignal | undefined },
): AsyncGenerator<OutputRecord, void, undefined> {
  const ended = new AbortController();
  const either = signal === undefined ? ended.signal : AbortSignal.any([signal, ended.signal]);
  try {
    const query = { after, follow };
    const response = await requests.open('GET', `${processPath}/output`, { query, signal: either });
    const decoder = new RecordDecoder();
    for await (const chunk of response as AsyncIterable<Buffer>) yield* decoder.push(chunk);
    if (decoder.isWithinRecord) throw new Error('The output was cut within a record.');
  } finally {
    ended.abort();
  }
}

function isLost(error: unknown): boolean {
  if (!(error instanceof DomainError)) return true;
  return ['COMPUTER_CONNECTION_LOST', 'COMPUTER_NOT_ANSWERING', 'HOST_LOST'].includes(error.code);
}
