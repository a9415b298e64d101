/**
 * One line of `atrium doctor`. `off` is neither good nor bad: the part is not wanted, or does not run now. `slow` is
 * healthy but took long.
 */
export interface Check {
  name: string;
  state: 'ok' | 'slow' | 'off' | 'wrong';
  detail: string;
}

export type CheckResult = Omit<Check, 'name'>;

export const ok = (detail: string): CheckResult => ({ state: 'ok', detail });
export const slow = (detail: string): CheckResult => ({ state: 'slow', detail });
export const off = (detail: string): CheckResult => ({ state: 'off', detail });
export const wrong = (detail: string): CheckResult => ({ state: 'wrong', detail });
