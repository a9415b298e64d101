import { scheduleFault, shortestIntervalMs } from '../../base/schedule.ts';

interface Written {
  cron: string;
  timeZone: string;
  jitterSeconds: number;
}

/** Returns the fault of a manifest's schedule, or undefined. */
export function checkAppSchedule(
  { cron, timeZone, jitterSeconds }: Written,
  limits: { minIntervalMs: number },
  now: Date,
) {
  const fault = scheduleFault({ cron, timeZone }, limits, now);
  if (fault !== undefined) return { field: fault.field as 'cron' | 'timeZone', detail: fault.detail };
  if (jitterSeconds * 1_000 < shortestIntervalMs(cron, now)) return undefined;
  return { field: 'jitter' as const, detail: 'The jitter must be shorter than the time between two runs.' };
}
