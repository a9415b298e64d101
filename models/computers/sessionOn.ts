import type { ComputerStatus } from './computer.ts';

/** A session on a computer, such as a desktop or a browser. It ends at the latest with its start of the computer. */
export interface SessionOn {
  /** Which start of its computer it belongs to. */
  generation: number;
  /** Why it has ended, as its own row says. */
  endCode: string | null;
  /** Its computer as it is now. Null if the computer is deleted. */
  computerGeneration: number | null;
  computerStatus: ComputerStatus | null;
  computerError: string | null;
}

/** The columns of the computer, for a query that joins it as `c`. */
export const computerOfSession =
  'c.generation AS computerGeneration, c.status AS computerStatus, c.error_code AS computerError';

/** Whether the session's start of its computer is over, so that none of its processes runs. */
export function isOffComputer({ generation, computerGeneration, computerStatus }: SessionOn): boolean {
  const isUp = computerStatus === 'running' || computerStatus === 'paused' || computerStatus === 'starting';
  return !isUp || computerGeneration !== generation;
}

/** Why a session that is over has ended. Its own row may not say so yet. */
export function endCodeOnComputer({ endCode, computerError }: SessionOn): string {
  if (endCode !== null) return endCode;
  return ['HOST_LOST', 'HOST_REMOVED'].includes(computerError ?? '') ? 'HOST_LOST' : 'COMPUTER_STOPPED';
}
