/** One line of `atrium doctor`. `off` is neither good nor bad: a part that is not wanted, or is not running now. */
export interface Check {
  name: string;
  state: 'ok' | 'off' | 'wrong';
  detail: string;
}

export type CheckResult = Omit<Check, 'name'>;

export const ok = (detail: string): CheckResult => ({ state: 'ok', detail });
export const off = (detail: string): CheckResult => ({ state: 'off', detail });
export const wrong = (detail: string): CheckResult => ({ state: 'wrong', detail });
