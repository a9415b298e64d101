import { errorsOf } from '../../models/errors.ts';

/** Why a call to a browser, or to one of its tabs, has failed. */
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
  NO_HISTORY: 'conflict',
  PDF_TOO_LARGE: 'conflict',
  ELEMENT_GONE: 'conflict',
  ELEMENT_NOT_VISIBLE: 'conflict',
  ELEMENT_COVERED: 'conflict',
  ACTION_REFUSED: 'unprocessable',
  NOT_SEEN: 'upstreamTimeout',
} as const);
