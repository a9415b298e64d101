import { setTimeout as delay } from 'node:timers/promises';
import { ApplicationFailure } from '@temporalio/activity';
import type { Database } from '../models/database/database.ts';
import { noteRound, type SweepPosition, type SweptRound, sweepPositions } from '../models/sweeping/sweepRounds.ts';
import type { Logger } from '../telemetry/logger.ts';
import { keepAlive } from './keepAlive.ts';
import { OutOfTime, type SweepTime, sweepTime } from './sweepTime.ts';

interface RoundDeps {
  database: Pick<Database, 'pool'>;
  logger: Logger;
  /** How long each sweep may take in one round. */
  budgetMs: number;
  /** How long a round waits for a sweep that does not stop when its time is used up. */
  patienceMs?: number | undefined;
}

interface Ended {
  name: string;
  how: 'through' | 'unfinished' | 'failed' | 'stuck';
  /** The report of a sweep that reached its end. */
  done?: unknown;
}

/**
 * Makes the one activity that runs sweeps side by side. An activity for each would cost Temporal and the worker many
 * times what the sweeps themselves cost. Each sweep has a time budget, and the next round continues where it stopped,
 * so that one sweep's backlog delays no other. Settles when all have ended, with the report of each; rejects with the
 * names of those that failed. A sweep that does not stop is left behind, and not begun again before it has ended.
 */
export function createSweepTogether(deps: RoundDeps, sweeps: Record<string, () => Promise<unknown>>) {
  const { database, logger, budgetMs, patienceMs = 10_000 } = deps;
  const leftBehind = new Set<string>();

  async function run(name: string, time: SweepTime): Promise<Ended> {
    try {
      const done = await sweepTime.run(time, sweeps[name] as () => Promise<unknown>);
      return time.positions.size === 0 ? { name, how: 'through', done } : { name, how: 'unfinished' };
    } catch (error) {
      if (error instanceof OutOfTime) return { name, how: 'unfinished' };
      logger.warn({ err: error, sweep: name }, 'A sweep has failed; the next one tries again.');
      return { name, how: 'failed' };
    }
  }

  return async function sweepTogether(): Promise<Record<string, unknown>> {
    using heartbeat = keepAlive();
    const names = Object.keys(sweeps).filter((name) => !leftBehind.has(name));
    const known = await sweepPositions(database, Object.keys(sweeps));
    const positionsOf = new Map(names.map((name) => [name, new Map<string, SweepPosition>(known.get(name))]));
    const budget = new AbortController();
    const over = new AbortController();
    const timer = setTimeout(() => budget.abort(new OutOfTime('The next round goes on.')), budgetMs);
    const signal = AbortSignal.any([heartbeat.cancelled, budget.signal]);
    const impatient = delay(budgetMs + patienceMs, undefined, { signal: over.signal });
    impatient.catch(() => undefined);
    const running = [...positionsOf].map(async ([name, positions]): Promise<Ended> => {
      const ended = run(name, { signal, cancelled: heartbeat.cancelled, positions });
      const stuck = impatient.then((): Ended => ({ name, how: 'stuck' }));
      const first = await Promise.race([ended, stuck]);
      if (first.how === 'stuck') {
        logger.warn({ sweep: name }, 'A sweep does not end; the worker goes on without waiting for it.');
        leftBehind.add(name);
        void ended.then(() => leftBehind.delete(name));
      }
      return first;
    });
    const ended = await Promise.all(running).finally(() => {
      clearTimeout(timer);
      over.abort();
    });
    heartbeat.cancelled.throwIfAborted();
    await noteRound(database, ended.map(asRound));
    const failed = [...leftBehind, ...ended.flatMap(({ name, how }) => (how === 'failed' ? [name] : []))];
    // Not retried: the next round comes soon, and a retry would also repeat the other sweeps' work.
    if (failed.length > 0) throw ApplicationFailure.nonRetryable(`Failed: ${failed.join(', ')}`, 'SweepsFailed');
    return Object.fromEntries(ended.map((one) => [one.name, one.how === 'through' ? one.done : one.how]));

    function asRound({ name, how }: Ended): SweptRound {
      // A sweep that broke off has saved no position, so the next round begins where this one did.
      const positions = how === 'failed' || how === 'stuck' ? known.get(name) : positionsOf.get(name);
      return { name, isThrough: how === 'through', positions: positions ?? new Map() };
    }
  };
}
