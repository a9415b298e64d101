import { setTimeout as sleep } from 'node:timers/promises';
import type { Report } from './report.ts';
import type { Service } from './services.ts';

/** A part that can restart at the same address, so that its clients keep it. */
export interface Supervised<P extends { service: Service }> {
  now(): P;
  /** Resolves with a line for a person when the part has ended and cannot be restarted. */
  failed: Promise<string>;
  stop(): Promise<void>;
}

export interface SuperviseOptions<P> {
  start: () => Promise<P>;
  report: Report;
  onRestart: () => void;
  /** Aborted when everything is about to stop. An end must not cause a restart then. */
  signal: AbortSignal;
  /** The wait before each restart. Their number is the number of attempts. */
  backoffMs?: readonly number[];
  /** Rejects if the part does not answer. Must always settle. */
  probe?: ((part: P) => Promise<void>) | undefined;
  probeEveryMs?: number;
  /** A part that has failed this many probes in a row is ended, which restarts it. */
  maxSilentProbes?: number;
}

/** MariaDB ends itself on a full disk. It is back five seconds after that has room, and is tried for a minute. */
const usualBackoffMs = [500, 1_000, 2_000, ...Array.from({ length: 12 }, () => 5_000)];
/** After the part has run for this long, the attempts start again from the first wait. */
const settledMs = 60_000;
const usualProbeEveryMs = 10_000;
const usualMaxSilentProbes = 6;

/**
 * Restarts a part that ends by itself, each time after a longer wait. A part that runs but does not answer would block
 * everything for good, so it is ended.
 */
export function supervise<P extends { service: Service }>(first: P, options: SuperviseOptions<P>): Supervised<P> {
  const { backoffMs = usualBackoffMs } = options;
  const stopped = new AbortController();
  const stopping = AbortSignal.any([stopped.signal, options.signal]);
  let part = first;

  /** Resolves once the part runs again, or with the reason why it cannot. */
  async function bringBack(tries: { left: number[] }): Promise<string | undefined> {
    for (let reason = part.service.describeEnd(); ; ) {
      const waitMs = tries.left.shift();
      if (waitMs === undefined) return reason;
      options.report(`${reason}. It is started again in ${waitMs / 1_000} s.`);
      await sleep(waitMs, undefined, { signal: stopping });
      try {
        part = await options.start();
        options.report(`${part.service.title} runs again.`);
        options.onRestart();
        return undefined;
      } catch (error) {
        stopping.throwIfAborted();
        reason = error instanceof Error ? error.message : String(error);
      }
    }
  }

  async function endWhenSilent(over: AbortSignal): Promise<void> {
    const { probe, probeEveryMs = usualProbeEveryMs, maxSilentProbes = usualMaxSilentProbes } = options;
    if (probe === undefined) return;
    for (let silent = 0; silent < maxSilentProbes; ) {
      await sleep(probeEveryMs, undefined, { signal: over });
      silent = await probe(part).then(
        () => 0,
        () => silent + 1,
      );
    }
    over.throwIfAborted();
    options.report(`${part.service.title} runs, but has not answered ${maxSilentProbes} times in a row. It is ended.`);
    await part.service.abort();
  }

  async function watch(): Promise<string> {
    const tries = { left: [...backoffMs] };
    for (;;) {
      const startedAt = performance.now();
      const ended = new AbortController();
      endWhenSilent(AbortSignal.any([ended.signal, stopping])).catch(() => undefined); // the part ended first
      await Promise.race([part.service.exited, aborted]);
      ended.abort();
      stopping.throwIfAborted();
      if (performance.now() - startedAt > settledMs) tries.left = [...backoffMs];
      const failure = await bringBack(tries);
      if (failure !== undefined) return failure;
    }
  }

  const aborted = new Promise<void>((resolve) => {
    if (stopping.aborted) resolve();
    else stopping.addEventListener('abort', () => resolve());
  });
  const watched = watch();
  const ended = watched.then(
    () => undefined,
    () => undefined,
  );
  return {
    now: () => part,
    failed: watched.catch(() => new Promise<never>(() => undefined)), // a stop is not a failure
    async stop() {
      stopped.abort();
      await ended; // lets a pending start finish first
      await part.service.stop();
    },
  };
}
