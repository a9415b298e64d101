import { randomUUID } from 'node:crypto';
import { Line } from './line.ts';
import { turnsChannel } from './redisNotices.ts';

const hearTimeoutMs = 15_000;

/** Checks that a message on the installation's channel comes back. Rejects with the reason if it does not. */
export async function checkRedis({ url, installation }: { url: string; installation: string }): Promise<void> {
  const heard = Promise.withResolvers<void>();
  const late = setTimeout(
    () => heard.reject(new Error('what is told on its channel does not come back')),
    hearTimeoutMs,
  );
  let line: Line | undefined;
  try {
    line = await Line.open(
      {
        url,
        channel: turnsChannel(installation),
        self: `doctor-${randomUUID()}`,
        onNotice: () => undefined,
        onBeat: heard.resolve,
      },
      AbortSignal.timeout(hearTimeoutMs),
    );
    line.beat();
    await Promise.race([heard.promise, line.lost.then((reason) => Promise.reject(reason))]);
  } finally {
    clearTimeout(late);
    line?.close();
  }
}
