import { errorsOf } from '../../base/errors.ts';
import { CommandRefused, ConnectionLost, MessageTooLong, ProtocolViolation } from './cdp/connection.ts';

/** The errors of a call to a browser or to one of its tabs. */
export const browserError = errorsOf({
  BROWSERS_UNAVAILABLE: 'unprocessable',
  PROFILE_IN_USE: 'conflict',
  PROFILE_UNUSABLE: 'unprocessable',
  BROWSER_ENDED: 'upstream',
  BROWSER_NOT_ENDING: 'upstreamTimeout',
  BROWSER_NOT_ANSWERING: 'upstreamTimeout',
  BROWSER_ANSWERED_WRONGLY: 'upstream',
  BROWSER_CONNECTION_LOST: 'unavailable',
  BROWSER_REFUSED: 'upstream',
  TAB_NOT_FOUND: 'notFound',
  TAB_CRASHED: 'conflict',
  TOO_MANY_TABS: 'rateLimited',
  PAGE_CHANGED: 'conflict',
  PAGE_TOO_LARGE: 'conflict',
  URL_REFUSED: 'unprocessable',
  NAVIGATION_FAILED: 'upstream',
  NAVIGATION_TIMEOUT: 'upstreamTimeout',
  EGRESS_REFUSED: 'unprocessable',
  EGRESS_UNRESOLVED: 'upstream',
  EGRESS_UNREACHABLE: 'upstream',
  EGRESS_BUSY: 'rateLimited',
  NO_HISTORY: 'conflict',
  PDF_TOO_LARGE: 'conflict',
  ELEMENT_GONE: 'conflict',
  ELEMENT_NOT_VISIBLE: 'conflict',
  ELEMENT_COVERED: 'conflict',
  ACTION_REFUSED: 'unprocessable',
  NOT_SEEN: 'upstreamTimeout',
} as const);

export function ended(cause?: unknown): Error {
  return browserError('BROWSER_ENDED', 'The browser of this session has ended.', { cause });
}

export function wrong(cause?: unknown): Error {
  return browserError('BROWSER_ANSWERED_WRONGLY', 'The program that answers as this browser is not Chromium.', {
    cause,
  });
}

/** Chromium's messages when the page, frame or element is gone. */
const changed = /navigated or closed|context|session with given id|no target|detached|active page/i;

/** Turns an error of the connection into one for the caller. */
export async function callFailure(
  cause: unknown,
  { isLate, isAlive }: { isLate: boolean; isAlive: () => Promise<boolean> },
): Promise<unknown> {
  if (isLate) return browserError('BROWSER_NOT_ANSWERING', 'The browser, or this page, does not answer.', { cause });
  if (cause instanceof ProtocolViolation) return wrong(cause);
  if (cause instanceof MessageTooLong) return browserError('PAGE_TOO_LARGE', 'This page is too large.', { cause });
  if (cause instanceof ConnectionLost) {
    if (!(await isAlive())) return ended(cause);
    const detail = 'The connection to the browser was lost.';
    return browserError('BROWSER_CONNECTION_LOST', detail, { retryAfterSeconds: 1, cause });
  }
  if (!(cause instanceof CommandRefused)) return cause;
  if (changed.test(cause.message)) {
    return browserError('PAGE_CHANGED', 'The page changed in the meantime. Look at it again.', { cause });
  }
  return browserError('BROWSER_REFUSED', 'The browser refuses this now.', { cause });
}
