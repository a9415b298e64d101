/** Why a computer is in `error`, or stopped by itself, for people. */
const details: Readonly<Record<string, string>> = {
  HOST_LOST: 'Its host does not answer.',
  HOST_REMOVED: 'Its host was removed for good, and its home with it. Recover it with discardHome to begin anew.',
  NO_HOST: 'No host can run it now.',
  COMPUTERS_OFF: 'Its host cannot run computers now; the host’s log says why.',
  TIMED_OUT: 'Its host did not do it in time.',
  START_FAILED: 'It did not start; the host’s log says why.',
  DISK_FULL: 'The disk of its host is full.',
  COMPUTER_ENDED: 'It ended by itself, or its host was started anew.',
  COMPUTER_NOT_ANSWERING: 'It no longer answered, and was ended. Its processes are lost, its home is there.',
  COMPUTER_NOT_RUNNING: 'It does not run.',
  COMPUTER_STOPPED: 'Somebody stopped it meanwhile.',
  COMPUTER_PAUSED: 'Somebody paused it meanwhile.',
  COMPUTER_WOKEN: 'Somebody wants it to run meanwhile.',
  COMPUTER_DELETED: 'Somebody deleted it meanwhile.',
  HOST_FAILED: 'Its host could not do it; the host’s log says why.',
  TOO_MANY_RUNNING: 'The space has as many running computers as it may.',
  CREDITS_EXHAUSTED: 'The space has no credits left.',
  HOST_STOPPED: 'Its host was stopped, and all of its computers with it.',
  RESTORED:
    'It ran when the backup was made from which Atrium was restored. Its processes are lost, its home is there.',
  PAUSED_TOO_LONG:
    'It was paused for as long as a computer may be, and was stopped: its memory is gone, its home is there.',
  IDLE: 'It stopped by itself, since nothing was running or asked of it.',
};

/** Codes of hosts, and the codes that stand for them here. */
const sameAs: Readonly<Record<string, string>> = {
  COMPUTER_ABSENT: 'COMPUTER_ENDED',
  GENERATION_ENDED: 'COMPUTER_ENDED',
  GENERATION_OUTDATED: 'COMPUTER_ENDED',
};

/** The code that is stored for a failure. Codes without a detail become `HOST_FAILED`. */
export function reasonCode(code: string): string {
  const named = sameAs[code] ?? code;
  return Object.hasOwn(details, named) ? named : 'HOST_FAILED';
}

export function detailOf(code: string): string {
  return details[code] ?? '';
}
