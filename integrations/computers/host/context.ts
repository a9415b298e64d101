import type { HolderPool } from './holders.ts';
import type { HostDeadlines, HostOptions } from './host.ts';
import type { HostLayout } from './layout.ts';
import type { Machinery } from './setUp.ts';

/** What every part of a host works with. */
export interface HostContext extends Machinery {
  layout: HostLayout;
  options: HostOptions;
  deadlines: HostDeadlines;
  holders: HolderPool;
  log: NonNullable<HostOptions['log']>;
}
