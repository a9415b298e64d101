import type { HostOptions } from '../host/host.ts';
import type { DriverName } from '../types.ts';
import { openBubblewrap } from './bubblewrap/driver.ts';
import { openDocker } from './docker/driver.ts';
import type { Driver, DriverSetting, OpenedDriver, RefusedDriver } from './driver.ts';
import { openGvisor } from './gvisor/driver.ts';

/** In the order in which they are preferred. */
export const driverNames: readonly DriverName[] = ['bubblewrap', 'gvisor', 'docker'];

/** Opens the drivers that this host is to have, as far as its machine has them. */
export async function openDrivers(
  setting: DriverSetting,
  { drivers: wanted = driverNames, runsc, docker = {} }: Pick<HostOptions, 'drivers' | 'runsc' | 'docker'>,
): Promise<{ drivers: Map<DriverName, Driver>; refused: RefusedDriver[] }> {
  const open: Record<DriverName, () => Promise<OpenedDriver>> = {
    bubblewrap: () => openBubblewrap(setting),
    gvisor: () => openGvisor(setting, runsc),
    docker: () => openDocker(setting, docker),
  };
  const opened = await Promise.all(driverNames.filter((name) => wanted.includes(name)).map((name) => open[name]()));
  const drivers = new Map<DriverName, Driver>();
  const refused: RefusedDriver[] = [];
  for (const one of opened) {
    if ('refused' in one) refused.push(one);
    else drivers.set(one.name, one);
  }
  return { drivers, refused };
}
