import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { type CdpConnection, CommandRefused } from './cdp/connection.ts';
import { failureByChromium, failureByWayOut } from './pageFailures.ts';
import { said, saidUrl } from './said.ts';
import type { Tab } from './types.ts';

/** A page that takes longer to say how far it is, is loading. */
const stateMs = 300;
const maxIconLength = 8_000;

export type TabState = Pick<Tab, 'status' | 'faviconUrl' | 'failure'>;

export const unknownState: TabState = { status: 'loading', faviconUrl: null, failure: null };

/** Asked in our own world, where the page's own scripts change nothing; its elements are as it wants them. */
const expression = `(() => {
  const [{ responseStatus = 0 } = {}] = performance.getEntriesByType('navigation');
  const isAnswer = document.contentType === 'text/plain' && responseStatus >= 400;
  const isChromium = location.protocol === 'chrome-error:';
  const icon = document.querySelector('link[rel~="icon" i][href]')?.href;
  return {
    isComplete: document.readyState === 'complete',
    icon: typeof icon === 'string' && icon.length <= ${maxIconLength} ? icon : '',
    byChromium: isChromium ? (document.querySelector('.error-code')?.textContent ?? '').slice(0, 200) : null,
    byWayOut: isAnswer ? (document.body?.firstChild?.textContent ?? '').slice(0, 200) : null,
  };
})()`;

const answered = z.object({
  isComplete: z.boolean(),
  icon: z.string().max(maxIconLength),
  byChromium: z.string().nullable(),
  byWayOut: z.string().nullable(),
});

/** Only looks: whoever is shown a dialog by this tab is not robbed of it. */
export async function stateOf(cdp: CdpConnection, targetId: string): Promise<TabState> {
  try {
    const { sessionId } = await cdp.send('Target.attachToTarget', { targetId, flatten: true });
    const state = await stateIn(cdp, targetId, sessionId);
    await cdp.send('Target.detachFromTarget', { sessionId });
    return state;
  } catch (error) {
    if (error instanceof CommandRefused) return unknownState; // it was closed meanwhile
    throw error;
  }
}

/** The same of one that is attached. */
export async function stateIn(cdp: CdpConnection, targetId: string, sessionId: string): Promise<TabState> {
  const crash = Promise.withResolvers<TabState>();
  const note = (_event: object, of: string | undefined) => {
    if (of === sessionId) crash.resolve({ ...unknownState, status: 'crashed' });
  };
  const given = new AbortController();
  cdp.on('Inspector.targetCrashed', note);
  try {
    cdp.send('Inspector.enable', {}, sessionId).catch(() => undefined);
    const answer = ask(cdp, targetId, sessionId).catch(() => unknownState);
    const late = delay(stateMs, unknownState, { signal: given.signal });
    return await Promise.race([answer, crash.promise, late]);
  } finally {
    given.abort();
    cdp.off('Inspector.targetCrashed', note);
  }
}

async function ask(cdp: CdpConnection, frameId: string, sessionId: string): Promise<TabState> {
  const { executionContextId: contextId } = await cdp.send('Page.createIsolatedWorld', { frameId }, sessionId);
  const { result } = await cdp.send('Runtime.evaluate', { expression, contextId, returnByValue: true }, sessionId);
  const { isComplete, icon, byChromium, byWayOut } = answered.parse(result.value);
  return {
    status: isComplete ? 'complete' : 'loading',
    faviconUrl: iconOf(icon),
    failure: byChromium === null ? failureByWayOut(byWayOut ?? '') : failureByChromium(`net::${byChromium}`),
  };
}

/** Cut, an address is another one; and of what is in it, no more is told than anybody shows. */
function iconOf(text: string): string | null {
  const url = URL.parse(text);
  if (url?.protocol === 'data:') return said(url.href, maxIconLength) === url.href ? url.href : null;
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:';
  return isWeb && saidUrl(url.href) === url.href ? url.href : null;
}
