import type { Driver } from './driver.ts';
import type { HolderPool } from './holders.ts';
import type { HostDeadlines, HostOptions } from './host.ts';
import type { HostLayout } from './layout.ts';
import type { ComputerRecord } from './records.ts';
import type { Machinery } from './setUp.ts';

/** What every part of a host works with. */
export interface HostContext extends Machinery {
  layout: HostLayout;
  options: HostOptions;
  deadlines: HostDeadlines;
  holders: HolderPool;
  log: NonNullable<HostOptions['log']>;
}

/** What a computer was last started with. Where this host no longer has that, any other ends what is left of it. */
export function driverOf({ drivers }: Pick<Machinery, 'drivers'>, { run }: Pick<ComputerRecord, 'run'>): Driver {
  const [first] = drivers.values();
  return (drivers.get(run?.spec.driver ?? 'bubblewrap') ?? first) as Driver;
}
