import { CommandRefused } from './cdp/connection.ts';
import { browserError } from './failures.ts';
import type { Page } from './page.ts';
import type { Navigation } from './types.ts';

/** Until a site begins to answer. */
const commitMs = 30_000;
/** A page can be read as soon as its document is there; what it loads further is given a little more. */
const documentMs = 5_000;
const restMs = 3_000;
const historyLookMs = 50;
const maxUrlLength = 16_384;
/** What people may open. Of the rest `file:` and Chromium's own pages would show the computer rather than the web. */
const schemes = new Set(['http:', 'https:', 'data:', 'blob:']);

/** Its policies, and its own rule that no site leads to a file. */
const refusedBy = new Set(['net::ERR_BLOCKED_BY_ADMINISTRATOR', 'net::ERR_UNSAFE_REDIRECT']);

/** Throws 422 `URL_REFUSED`. Chromium's policies refuse the same where a page goes there by itself. */
export function requireUrl(text: string): string {
  const url = text.length <= maxUrlLength ? URL.parse(text) : null;
  if (url === null || !(schemes.has(url.protocol) || url.href === 'about:blank')) {
    throw browserError('URL_REFUSED', 'A browser opens addresses of http and https, such as https://example.com/.');
  }
  return url.href;
}

/**
 * Takes a page somewhere. Throws 422 `URL_REFUSED`, 502 `NAVIGATION_FAILED`, 504 `NAVIGATION_TIMEOUT`, 409 `NO_HISTORY`.
 */
export async function navigate(page: Page, to: Navigation): Promise<void> {
  if ('url' in to) return open(page, requireUrl(to.url));
  // What it is at now, where it answers at all.
  await page.answers();
  const before = page.loading.loaderId;
  if (to.action === 'stop') {
    await page.send('Page.stopLoading', {});
    return;
  }
  if (to.action === 'reload') {
    page.isCrashed = false;
    await page.send('Page.reload', {});
    if (!(await page.until(() => page.loading.loaderId !== before, commitMs))) throw late();
  } else if (!(await goInHistory(page, to.action === 'back' ? -1 : 1, before))) return;
  await settle(page);
}

async function open(page: Page, url: string): Promise<void> {
  const answer = page.send('Page.navigate', { url });
  let isCommitted = false;
  const tell = () => {
    isCommitted = true;
    page.tell();
  };
  answer.then(tell, tell);
  if (!(await page.until(() => isCommitted, commitMs))) {
    answer.catch(() => undefined);
    await page.send('Page.stopLoading', {});
    throw late();
  }
  const { errorText, loaderId, isDownload } = await answer;
  if (isDownload === true) return;
  if (errorText !== undefined) throw failed(errorText);
  page.isCrashed = false;
  // Without a loader, it was to another place of the same document.
  if (loaderId === undefined) return;
  await page.until(() => page.loading.loaderId === loaderId, documentMs);
  await settle(page);
}

/** Answers whether it is another document; else only the place in it has changed. */
async function goInHistory(page: Page, by: 1 | -1, before: string): Promise<boolean> {
  const { currentIndex, entries } = await page.send('Page.getNavigationHistory', {});
  const entry = entries[currentIndex + by];
  if (entry === undefined) {
    throw browserError('NO_HISTORY', `There is no page to go ${by < 0 ? 'back' : 'forward'} to.`);
  }
  await page.send('Page.navigateToHistoryEntry', { entryId: entry.id });
  const isOther = () => page.loading.loaderId !== before;
  const deadline = performance.now() + commitMs;
  while (!(await page.until(isOther, historyLookMs))) {
    if ((await placeInHistory(page)) === entry.id) return page.until(isOther, historyLookMs);
    if (performance.now() > deadline) throw late();
  }
  return true;
}

/** Undefined while one document takes the place of another. */
async function placeInHistory(page: Page): Promise<number | undefined> {
  try {
    const { currentIndex, entries } = await page.send('Page.getNavigationHistory', {});
    return entries[currentIndex]?.id;
  } catch (error) {
    if (error instanceof CommandRefused) return undefined;
    throw error;
  }
}

/** Waits until the document that the page is at can be read, as long as that makes sense. */
export async function settle(page: Page): Promise<void> {
  const has = (step: string) => () => page.isCrashed || page.loading.steps.has(step);
  if (await page.until(has('DOMContentLoaded'), documentMs)) await page.until(has('load'), restMs);
}

/** Waits for where the page has begun to go by itself, such as after a click. */
export async function settleAfter(page: Page, before: string, stops: number): Promise<void> {
  const isOver = () => page.isCrashed || page.loading.loaderId !== before || page.stops > stops;
  if (await page.until(isOver, documentMs)) await settle(page);
}

function failed(errorText: string): Error {
  // Chromium's own word, and nothing else.
  const word = /net::ERR_[A-Z0-9_]{1,100}/.exec(errorText)?.[0] ?? 'net::ERR_FAILED';
  if (refusedBy.has(word)) {
    return browserError(
      'URL_REFUSED',
      'Addresses of this kind are not opened, also not where another one leads there.',
    );
  }
  return browserError('NAVIGATION_FAILED', `The page could not be opened: ${word}.`);
}

function late(): Error {
  return browserError('NAVIGATION_TIMEOUT', `The site has not answered within ${commitMs / 1_000} seconds.`);
}
