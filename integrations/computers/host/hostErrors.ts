import { untilAborted } from '../../../base/async.ts';

/** Why an image of a registry cannot be used. */
export type ImageErrorCode =
  /** This host takes no images from that registry, or none at all; the message says why. */
  | 'IMAGES_OFF'
  | 'IMAGE_NOT_FOUND'
  | 'IMAGE_ACCESS_DENIED'
  /** It does not have the content that its digest names. */
  | 'IMAGE_DAMAGED'
  /** It is for other machines, or has files that computers cannot have. */
  | 'IMAGE_UNSUPPORTED'
  | 'IMAGE_TOO_LARGE'
  | 'IMAGE_FAILED'
  /** The registry cannot be reached, or fails. */
  | 'REGISTRY_UNREACHABLE'
  /** The registry accepts connections, and then says nothing more. */
  | 'REGISTRY_TIMED_OUT';

export type HostErrorCode =
  | ImageErrorCode
  /** This host does not have the computer. */
  | 'COMPUTER_ABSENT'
  /** The computer does not run. */
  | 'COMPUTER_NOT_RUNNING'
  /** A newer generation was started. */
  | 'GENERATION_OUTDATED'
  /** This generation has run and ended. Another start needs another generation. */
  | 'GENERATION_ENDED'
  | 'START_FAILED'
  | 'DISK_FULL'
  /** The disk has no room for a home that this host does not have yet. */
  | 'NO_ROOM_FOR_HOME'
  /** This host has no snapshot of that save. */
  | 'SAVE_ABSENT'
  /** A home is far longer as a stream than on its disk. */
  | 'SAVE_TOO_LARGE'
  /** A home has a path of more bytes than a save can have. */
  | 'PATH_TOO_LONG'
  /** The homes of this host cannot be filled with saves of that format. */
  | 'SAVE_UNREADABLE'
  /** This machine cannot run computers with a root file system of their own; the message says why. */
  | 'BASES_OFF'
  /** A root file system could not be made, for example because packages could not be fetched. */
  | 'BASE_FAILED'
  /** The computer runs, so its home cannot be replaced. */
  | 'HOME_IN_USE'
  /** The work did not end in time. A repeated call continues it. */
  | 'TIMED_OUT'
  /** Another process runs the computers of this folder. */
  | 'FOLDER_TAKEN'
  /** This machine cannot run computers; the message says what to do. */
  | 'COMPUTERS_OFF';

/** A failure of a host, with a reason for people. Users of a computer get `notRunning`, which reveals nothing of it. */
export class HostError extends Error {
  override readonly name = 'HostError';
  readonly code: HostErrorCode;

  constructor(code: HostErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Returns the result of `work`. Rejects if it takes too long or the signal aborts. The work itself goes on. */
export async function within<T>(work: Promise<T>, ms: number, what: string, signal?: AbortSignal): Promise<T> {
  const late = new AbortController();
  const error = new HostError('TIMED_OUT', `${what} took longer than ${ms / 1_000} s`);
  const timer = setTimeout(() => late.abort(error), ms);
  try {
    return await untilAborted(work, signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]));
  } finally {
    clearTimeout(timer);
  }
}
