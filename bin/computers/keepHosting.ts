import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../telemetry/logger.ts';
import type { Hosting } from './hosting.ts';

/** This process as the host of its folder: now, or as soon as the process that is the host has ended. */
export interface KeptHosting {
  /** Rejects when the worker of the host fails by itself. */
  readonly failed: Promise<never>;
  stop: Hosting['stop'];
}

/** A folder that another process serves costs a look at its lock. */
const lookMs = 2_000;

/**
 * Starts hosting, and goes on trying while another process has the folder: `start` gives `taken` then. Undefined where
 * this process is to be no host at all.
 */
export async function keepHosting(
  start: () => Promise<Hosting | 'taken' | undefined>,
  { logger, onHosting }: { logger: Logger; onHosting: (hosting: Hosting) => void },
): Promise<KeptHosting | undefined> {
  const first = await start();
  if (first === undefined) return undefined;
  const { promise: failed, reject: fail } = Promise.withResolvers<never>();
  // Whoever wants to know asks by itself.
  failed.catch(() => undefined);
  const take = (hosting: Hosting) => {
    hosting.worker.failed.catch(fail);
    onHosting(hosting);
    return hosting;
  };
  const stopping = new AbortController();
  const waitForIt = async (): Promise<Hosting | undefined> => {
    logger.info('Another process runs the computers of this folder. This one takes over when that one ends.');
    while (!stopping.signal.aborted) {
      await delay(lookMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return undefined;
      try {
        const next = await start();
        if (next === undefined) return undefined;
        if (next === 'taken') continue;
        logger.info('This process has taken over the computers of its folder.');
        return take(next);
      } catch (error) {
        logger.error({ err: error }, 'The computers of this folder could not be taken over; trying again.');
      }
    }
    return undefined;
  };
  const hosting = first === 'taken' ? waitForIt() : Promise.resolve(take(first));
  return {
    failed,
    async stop(options) {
      stopping.abort();
      await (await hosting)?.stop(options);
    },
  };
}
