import { setTimeout as delay } from 'node:timers/promises';
import type { Disks } from './disks.ts';

interface TendOptions {
  everyMs: number;
  /** Called with each new failure. */
  failed: (error: unknown) => void;
  /** Called while the homes cannot be used. */
  mend?: (fault: string) => Promise<void>;
}

/** Looks after the disks until it is stopped. Only one process may do so. */
export function tend(disks: Disks, { everyMs, failed, mend }: TendOptions): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  let last = '';
  const look = async (): Promise<number> => {
    try {
      const fault = disks.fault();
      if (fault === undefined) await disks.tend();
      else await mend?.(fault);
      last = '';
      return everyMs;
    } catch (error) {
      if (String(error) !== last) failed(error);
      last = String(error);
      return everyMs * 10;
    }
  };
  const work = async () => {
    while (!signal.aborted) {
      const waitMs = await look();
      await delay(waitMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  };
  const working = work();
  return {
    async stop() {
      stopping.abort();
      await working;
    },
  };
}
