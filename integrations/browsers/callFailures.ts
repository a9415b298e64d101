import { CommandRefused, ConnectionLost, MessageTooLong, ProtocolViolation } from './cdp/connection.ts';
import { ended, wrong } from './endpoint.ts';
import { browserError } from './failures.ts';

/** What Chromium says of what was there a moment ago. */
const changed = /navigated or closed|context|session with given id|no target|detached|active page/i;

/** What a failure of a call is for whoever made it. */
export async function callFailure(
  cause: unknown,
  { isLate, isAlive }: { isLate: boolean; isAlive: () => Promise<boolean> },
): Promise<unknown> {
  if (isLate) return browserError('BROWSER_NOT_ANSWERING', 'The browser, or this page, does not answer.', { cause });
  if (cause instanceof ProtocolViolation) return wrong(cause);
  if (cause instanceof MessageTooLong) {
    return browserError('PAGE_TOO_LARGE', 'This page is too large for this.', { cause });
  }
  if (cause instanceof ConnectionLost) {
    if (!(await isAlive())) return ended(cause);
    const detail = 'The connection to the browser was lost.';
    return browserError('BROWSER_CONNECTION_LOST', detail, { retryAfterSeconds: 1, cause });
  }
  if (!(cause instanceof CommandRefused)) return cause;
  if (changed.test(cause.message)) {
    return browserError('PAGE_CHANGED', 'The page changed meanwhile. Look at it again.', { cause });
  }
  return browserError('BROWSER_REFUSED', 'The browser does not do this now.', { cause });
}
