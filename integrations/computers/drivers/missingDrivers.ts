import type { HostContext } from '../host/context.ts';

/**
 * Looks again, as long as it is not stopped, for the drivers that were not there at the start: an engine may come later
 * than its host. `onOpened` is told when one has come.
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
      log('info', { driver: one.name, reason: one.refused }, 'A driver is off for another reason');
    }
    for (const [name, driver] of found.drivers) {
      drivers.set(name, driver);
      refused.delete(name);
      log('info', { driver: name }, 'A driver is there now');
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
