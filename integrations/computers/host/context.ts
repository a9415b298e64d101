import { DomainError } from '../../../base/errors.ts';
import type { Driver } from '../drivers/driver.ts';
import { driverNames } from '../drivers/drivers.ts';
import type { DriverName } from '../types.ts';
import type { HostDeadlines, HostOptions } from './host.ts';
import type { HostLayout } from './layout.ts';
import type { HolderPool } from './life/holders.ts';
import type { Machinery } from './machine/setUp.ts';
import type { ComputerRecord } from './records.ts';

/** What every part of a host works with. */
export interface HostContext extends Machinery {
  layout: HostLayout;
  options: HostOptions;
  deadlines: HostDeadlines;
  holders: HolderPool;
  log: NonNullable<HostOptions['log']>;
}

const retryAfterSeconds = 30;

/** Those that are there now, in the order in which they are preferred. */
export function driversOf({ drivers }: Pick<Machinery, 'drivers'>): DriverName[] {
  return driverNames.filter((name) => drivers.has(name));
}

/**
 * What a computer was last started with. Where this host is to have that and does not have it now, nobody else knows
 * how the computer fares: another driver would find nothing of it, and take it to stand still, or to have ended. Throws
 * 503 `HOST_FAILED` then. Where the host is not to have it any more, or nothing is left to know, any other ends the rest.
 */
export function driverOf(
  context: Pick<HostContext, 'drivers' | 'refused'>,
  { run }: Pick<ComputerRecord, 'run'>,
): Driver {
  const name = run?.spec.driver ?? 'bubblewrap';
  const there = context.drivers.get(name);
  if (there !== undefined) return there;
  const refusal = context.refused.get(name);
  const [first] = driversOf(context).map((each) => context.drivers.get(each));
  const isOver = run === null || run.spec.driver === undefined || run.phase === 'ended';
  if (first !== undefined && (isOver || refusal === undefined)) return first;
  const message = `This host cannot use ${name} now: ${refusal?.refused ?? 'it has no driver'}.`;
  throw new DomainError('unavailable', 'HOST_FAILED', message, { retryAfterSeconds });
}

/** The driver of a computer that does not say: written down with it, since another may be preferred later. */
export function usualDriver(context: Pick<HostContext, 'drivers'>): { driver: DriverName } | undefined {
  const [driver] = driversOf(context);
  return driver && { driver };
}
