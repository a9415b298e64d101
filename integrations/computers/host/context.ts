import { DomainError } from '../../../base/errors.ts';
import type { Driver } from '../drivers/driver.ts';
import { driverNames } from '../drivers/drivers.ts';
import type { DriverName } from '../types.ts';
import type { Drives } from './drives/drives.ts';
import type { HostDeadlines, HostOptions } from './host.ts';
import type { HostLayout } from './layout.ts';
import type { HolderPool } from './life/holders.ts';
import type { Machinery } from './machine/setUp.ts';
import type { ComputerRecord } from './records.ts';

/** The state that every part of a host works with. */
export interface HostContext extends Machinery {
  layout: HostLayout;
  options: HostOptions;
  deadlines: HostDeadlines;
  holders: HolderPool;
  /** The drives of spaces in its computers. Undefined if they do not have these here. */
  drives: Drives | undefined;
  log: NonNullable<HostOptions['log']>;
}

const retryAfterSeconds = 30;

/** The available drivers, the preferred one first. */
export function driversOf({ drivers }: Pick<Machinery, 'drivers'>): DriverName[] {
  return driverNames.filter((name) => drivers.has(name));
}

/**
 * The driver that a computer was last started with. While a wanted driver is missing, the state of its computers is
 * unknown: another driver would take them for stopped. Then this throws 503 `HOST_FAILED`. If the driver is no longer
 * wanted, or the computer has ended, any other driver cleans up.
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

/** Throws 503 `HOST_FAILED` while no home can be used. Each work on a home calls it first, in the computer's lane. */
export function requireHomes({ disks }: Pick<HostContext, 'disks'>): void {
  const fault = disks.fault();
  if (fault === undefined) return;
  throw new DomainError('unavailable', 'HOST_FAILED', `This host cannot use the homes: ${fault}.`, {
    retryAfterSeconds,
  });
}

/** The default driver. It is recorded with the computer, since the preference may change later. */
export function usualDriver(context: Pick<HostContext, 'drivers'>): { driver: DriverName } | undefined {
  const [driver] = driversOf(context);
  return driver && { driver };
}
