import type { HostContext } from '../host/context.ts';
import type { HostOptions } from '../host/host.ts';
import type { DriverName } from '../types.ts';
import { openBubblewrap } from './bubblewrap/driver.ts';
import { openDocker } from './docker/driver.ts';
import type { Driver, DriverSetting, OpenedDriver, RefusedDriver } from './driver.ts';
import { openGvisor } from './gvisor/driver.ts';

/** The drivers, the preferred one first. */
export const driverNames: readonly DriverName[] = ['bubblewrap', 'gvisor', 'docker'];

/** Opens the wanted drivers that this machine supports. */
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

/**
 * Tries missing drivers again until it is stopped, because an engine may start after its host. Calls `onOpened` when a
 * driver has opened.
 */
export function awaitDrivers(context: HostContext, onOpened: () => Promise<unknown>): { stop(): void } {
  const { deadlines, drivers, refused, log } = context;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  const look = async () => {
    const found = await context.openAgain([...refused.keys()]);
    for (const one of found.refused) {
      if (refused.get(one.name)?.refused === one.refused) continue;
      refused.set(one.name, one);
      log('info', { driver: one.name, reason: one.refused }, 'A driver is still missing, for another reason');
    }
    for (const [name, driver] of found.drivers) {
      drivers.set(name, driver);
      refused.delete(name);
      log('info', { driver: name }, 'A driver has become available');
    }
    if (found.drivers.size > 0 && !stopped) await onOpened();
  };
  const again = (waitMs: number) => {
    if (stopped || refused.size === 0) return;
    const failed = (error: unknown) => log('warn', { error }, 'The drivers could not be looked for');
    const next = Math.min(waitMs * 2, deadlines.driverMostMs);
    timer = setTimeout(
      () =>
        void look()
          .catch(failed)
          .finally(() => again(next)),
      waitMs,
    );
    timer.unref();
  };
  again(deadlines.driverMs);
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
