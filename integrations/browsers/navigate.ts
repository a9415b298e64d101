import type { AnswerTo } from './cdp/answers.ts';
import { CommandRefused } from './cdp/connection.ts';
import { browserError } from './failures.ts';
import type { Page } from './page.ts';
import { failureByChromium } from './pageFailures.ts';
import type { Navigation, TabFailure } from './types.ts';

type HistoryEntry = AnswerTo<'Page.getNavigationHistory'>['entries'][number];

/** Until a site begins to answer. */
const commitMs = 30_000;
/** A page can be read as soon as its document is there; what it loads further is given a little more. */
const documentMs = 5_000;
const restMs = 3_000;
const errorPageMs = 2_000;
const historyLookMs = 50;
const maxUrlLength = 16_384;
/** What people may open. Of the rest `file:` and Chromium's own pages would show the computer rather than the web. */
const schemes = new Set(['http:', 'https:', 'data:', 'blob:']);

/** Throws 422 `URL_REFUSED`. Chromium's policies refuse the same where a page goes there by itself. */
export function requireUrl(text: string): string {
  const url = text.length <= maxUrlLength ? URL.parse(text) : null;
  if (url === null || !(schemes.has(url.protocol) || url.href === 'about:blank')) {
    throw browserError('URL_REFUSED', 'A browser opens addresses of http and https, such as https://example.com/.');
  }
  return url.href;
}

/**
 * Takes a page somewhere, and answers why Chromium does not show it, if it says so at once. Throws 422 `URL_REFUSED`,
 * 504 `NAVIGATION_TIMEOUT`, 409 `NO_HISTORY`.
 */
export async function navigate(page: Page, to: Navigation): Promise<TabFailure | null> {
  const url = 'url' in to ? requireUrl(to.url) : undefined;
  const isFree = await page.answers();
  if ('action' in to && to.action === 'stop') {
    await page.send('Page.stopLoading', {});
    return null;
  }
  const entry = 'action' in to ? await entryOf(page, to.action) : undefined;
  if (!isFree) await page.leave();
  // After an empty page in between, what is in the history is opened anew.
  if (entry === undefined || !isFree) return open(page, url ?? entry?.url ?? 'about:blank');
  await goTo(page, entry.id, 'action' in to && to.action === 'reload');
  return null;
}

/** Throws 409 `NO_HISTORY`. */
async function entryOf(page: Page, action: 'back' | 'forward' | 'reload' | 'stop'): Promise<HistoryEntry> {
  const { currentIndex, entries } = await page.send('Page.getNavigationHistory', {});
  const entry = entries[currentIndex + (action === 'back' ? -1 : action === 'forward' ? 1 : 0)];
  if (entry === undefined) throw browserError('NO_HISTORY', `There is no page to go ${action} to.`);
  return entry;
}

async function open(page: Page, url: string): Promise<TabFailure | null> {
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
  if (isDownload === true) return null;
  if (errorText !== undefined) {
    // What Chromium shows in its place says where it was then, after redirects.
    const isShown = () => page.isCrashed || page.loading.loaderId === loaderId;
    if (errorText !== 'net::ERR_ABORTED' && (await page.until(isShown, errorPageMs))) await settle(page);
    return failureByChromium(errorText);
  }
  // Without a loader, it was to another place of the same document.
  if (loaderId === undefined) return null;
  if (!(await page.until(() => page.loading.loaderId === loaderId, commitMs))) throw late();
  await settle(page);
  return null;
}

async function goTo(page: Page, entryId: number, isReload: boolean): Promise<void> {
  const before = page.loading.loaderId;
  if (isReload) await page.send('Page.reload', {});
  else await page.send('Page.navigateToHistoryEntry', { entryId });
  const isOther = () => page.loading.loaderId !== before;
  const deadline = performance.now() + commitMs;
  while (!(await page.until(isOther, historyLookMs))) {
    if (performance.now() > deadline) throw late();
    // Another place of the same document is none that is loaded.
    if (isReload || (await placeInHistory(page)) !== entryId) continue;
    if (!(await page.until(isOther, historyLookMs))) return;
  }
  await settle(page);
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

function late(): Error {
  return browserError('NAVIGATION_TIMEOUT', 'The page has not opened in time.');
}
