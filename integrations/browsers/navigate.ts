import { CommandRefused } from './cdp/connection.ts';
import type { AnswerTo } from './cdp/protocol.ts';
import { browserError } from './failures.ts';
import type { Page } from './page.ts';
import { explained, failureByChromium } from './pageFailures.ts';
import { outcome, type Reach } from './tabs.ts';
import type { Navigation, TabFailure, TabOutcome } from './types.ts';

type HistoryEntry = AnswerTo<'Page.getNavigationHistory'>['entries'][number];

/** How long a site may take to begin its answer. */
const commitMs = 30_000;
/** How long to wait for the document, and then for the resources that it loads. */
const documentMs = 5_000;
const restMs = 3_000;
const errorPageMs = 2_000;
/** How long a page may take to say whether it is shown or has failed. On a busy machine that takes a while. */
const answerMs = 5_000;
const historyLookMs = 50;
const maxUrlLength = 16_384;
/** The schemes that callers may open. `file:` and Chromium's own pages would show the computer instead of the web. */
const schemes = new Set(['http:', 'https:', 'data:', 'blob:']);

/** Throws 422 `URL_REFUSED`. Chromium's policies refuse the same addresses when a page goes there by itself. */
export function requireUrl(text: string): string {
  const url = text.length <= maxUrlLength ? URL.parse(text) : null;
  if (url === null || !(schemes.has(url.protocol) || url.href === 'about:blank')) {
    throw browserError('URL_REFUSED', 'A browser opens addresses of http and https, such as https://example.com/.');
  }
  return url.href;
}

/** Takes a page somewhere. Throws what `Browser.navigate` throws when the page cannot be shown. */
export async function goTo(reach: Reach, page: Page, to: Navigation): Promise<TabOutcome> {
  const reported = await navigate(page, to);
  const tab = await outcome(reach, page, answerMs);
  // After a stop, the tab still shows the old page, whose failure is not this call's.
  if ('action' in to && to.action === 'stop') return tab;
  const asked = 'url' in to ? to.url : tab.url;
  const failure = tab.failure ?? (reported && (await explained(reported, asked, reach.decisionOn)));
  if (failure !== null) throw browserError(failure.code, failure.detail);
  return tab;
}

/** Returns why Chromium does not show the page, if it says so at once. */
async function navigate(page: Page, to: Navigation): Promise<TabFailure | null> {
  const url = 'url' in to ? requireUrl(to.url) : undefined;
  const isFree = await page.answers();
  if ('action' in to && to.action === 'stop') {
    await page.send('Page.stopLoading', {});
    return null;
  }
  const entry = 'action' in to ? await entryOf(page, to.action) : undefined;
  if (!isFree) await page.leave();
  // After the empty page of `leave`, an entry of the history is opened by its address.
  if (entry === undefined || !isFree) return open(page, url ?? entry?.url ?? 'about:blank');
  await goInHistory(page, entry.id, 'action' in to && to.action === 'reload');
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
    // Chromium's error page tells the address at which a redirect has failed.
    const isShown = () => page.isCrashed || page.loading.loaderId === loaderId;
    if (errorText !== 'net::ERR_ABORTED' && (await page.until(isShown, errorPageMs))) await settle(page);
    return failureByChromium(errorText);
  }
  // Without a loader, the address is another place in the same document.
  if (loaderId === undefined) return null;
  if (!(await page.until(() => page.loading.loaderId === loaderId, commitMs))) throw late();
  await settle(page);
  return null;
}

async function goInHistory(page: Page, entryId: number, isReload: boolean): Promise<void> {
  const before = page.loading.loaderId;
  if (isReload) await page.send('Page.reload', {});
  else await page.send('Page.navigateToHistoryEntry', { entryId });
  const isOther = () => page.loading.loaderId !== before;
  const deadline = performance.now() + commitMs;
  while (!(await page.until(isOther, historyLookMs))) {
    if (performance.now() > deadline) throw late();
    // Chromium loads nothing for another place in the same document.
    if (isReload || (await placeInHistory(page)) !== entryId) continue;
    if (!(await page.until(isOther, historyLookMs))) return;
  }
  await settle(page);
}

/** Undefined while one document replaces another. */
async function placeInHistory(page: Page): Promise<number | undefined> {
  try {
    const { currentIndex, entries } = await page.send('Page.getNavigationHistory', {});
    return entries[currentIndex]?.id;
  } catch (error) {
    if (error instanceof CommandRefused) return undefined;
    throw error;
  }
}

/** Waits until the page's document can be read, within limits. */
async function settle(page: Page): Promise<void> {
  const has = (step: string) => () => page.isCrashed || page.loading.steps.has(step);
  if (await page.until(has('DOMContentLoaded'), documentMs)) await page.until(has('load'), restMs);
}

/** Waits for a navigation that the page has begun by itself, for example after a click. */
export async function settleAfter(page: Page, before: string, stops: number): Promise<void> {
  const isOver = () => page.isCrashed || page.loading.loaderId !== before || page.stops > stops;
  if (await page.until(isOver, documentMs)) await settle(page);
}

function late(): Error {
  return browserError('NAVIGATION_TIMEOUT', 'The page has not opened in time.');
}
