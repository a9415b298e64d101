import type { RunStatus } from './run.ts';

/** How an attempt ended. */
export interface RunOutcome {
  status: Extract<RunStatus, 'succeeded' | 'failed' | 'cancelled' | 'timed_out'>;
  exitCode: number | null;
  signal: string | null;
  /** Shown to people. */
  error: { code: string; detail: string } | null;
}

interface Exit {
  state: 'exited' | 'killed' | 'lost';
  exitCode: number | null;
  signal: string | null;
  killedBy: 'timeout' | 'memory' | 'stop' | null;
}

const killed = {
  memory: { code: 'RUN_OUT_OF_MEMORY', detail: 'The run was ended because its computer ran out of memory.' },
  stop: { code: 'RUN_COMPUTER_STOPPED', detail: 'The computer was stopped during the run.' },
} as const;

/** The outcome of a run whose process has ended. `isCancelled`: we ended the process. */
export function outcomeOf(
  exit: Exit | undefined,
  { isCancelled, timeoutSeconds }: { isCancelled: boolean; timeoutSeconds: number },
): RunOutcome {
  const { exitCode = null, signal = null, killedBy = null, state = 'lost' } = exit ?? {};
  if (isCancelled) return { status: 'cancelled', exitCode, signal, error: null };
  if (killedBy === 'timeout') {
    const detail = `The run was ended after ${timeoutSeconds} s, the timeout of its component.`;
    return { status: 'timed_out', exitCode, signal, error: { code: 'RUN_TIMED_OUT', detail } };
  }
  if (state === 'exited' && exitCode === 0) return { status: 'succeeded', exitCode, signal, error: null };
  return { status: 'failed', exitCode, signal, error: reasonOf() };

  function reasonOf(): { code: string; detail: string } {
    if (killedBy !== null && killedBy !== 'timeout') return killed[killedBy];
    if (state === 'lost') {
      return { code: 'RUN_LOST', detail: 'The computer ended during the run. Changes made before that are kept.' };
    }
    if (signal !== null) return { code: 'RUN_KILLED', detail: `The run was ended by ${signal}.` };
    return { code: 'RUN_FAILED', detail: `The run failed with exit code ${exitCode}.` };
  }
}

/** Errors that a person must fix. A retry would fail in the same way. */
const forPeople = [
  'SECRET_MISSING',
  'CWD_NOT_FOUND',
  'APP_TOO_LARGE',
  'APP_VERSION_GONE',
  'APP_VERSION_WAITS',
  'RUN_NOT_ALLOWED',
  'DELIVERY_GONE',
  'NOT_FOUND',
  'DATABASE_DELETED',
];

export function isForPeople(code: string | null): boolean {
  return code !== null && forPeople.includes(code);
}

/** The outcome of an attempt that could not start. */
export function notRun(code: string, detail: string): RunOutcome {
  return { status: 'failed', exitCode: null, signal: null, error: { code, detail } };
}

export const cancelledBefore: RunOutcome = { status: 'cancelled', exitCode: null, signal: null, error: null };
