import { z } from 'zod';
import { lookUntil, orAfter } from '../../base/async.ts';
import type { HostClient } from '../computers/hostClient.ts';
import { type CdpConnection, CommandRefused } from './cdp/connection.ts';
import { type DevToolsEndpoint, getFromEndpoint } from './cdp/endpoint.ts';
import { browserError } from './failures.ts';
import { isTab, type Page, said, saidUrl } from './page.ts';
import { type DecisionOn, explained, failureByChromium, failureByWayOut } from './pageFailures.ts';
import type { Tab, TabOutcome } from './types.ts';

/** Each tab is at least one process on its computer. */
export const maxTabs = 50;
const maxTitleLength = 1_000;
const maxIconLength = 8_000;
/** A page that has not answered by then counts as loading. */
const stateMs = 300;
const lookMs = 10;

/** The context of one call to a browser. */
export interface Reach {
  client: HostClient;
  endpoint: DevToolsEndpoint;
  cdp: CdpConnection;
  signal: AbortSignal;
  decisionOn: DecisionOn;
}

/** Chromium's list of its tabs, the most recently used one first. */
const listed = z.array(
  z.object({
    id: z.string().max(200),
    type: z.string(),
    title: z.string(),
    url: z.string(),
    faviconUrl: z.string().optional(),
  }),
);

type Listed = Omit<Tab, 'status' | 'failure'>;
type TabState = Pick<Tab, 'status' | 'faviconUrl' | 'failure'>;

const unknownState: TabState = { status: 'loading', faviconUrl: null, failure: null };

export async function listTabs(reach: Reach): Promise<Tab[]> {
  const tabs = await list(reach);
  return Promise.all(tabs.map(async (tab) => withState(reach, tab, await stateOf(reach.cdp, tab.id))));
}

/** The tab of an attached page. Throws 404 `TAB_NOT_FOUND`. */
export async function tabOf(reach: Reach, page: Page, withinMs = stateMs): Promise<Tab> {
  const [tabs, state] = await Promise.all([list(reach), stateIn(reach.cdp, page.targetId, page.sessionId, withinMs)]);
  const tab = tabs.find(({ id }) => id === page.targetId);
  if (tab === undefined) throw browserError('TAB_NOT_FOUND', 'The tab was closed in the meantime.');
  return withState(reach, tab, state);
}

/** The tab of an attached page, with the dialogs that the page has shown during this call. */
export async function outcome(reach: Reach, page: Page, withinMs?: number): Promise<TabOutcome> {
  return { ...(await tabOf(reach, page, withinMs)), dialogs: page.dialogs };
}

/** The tabs whose ids are not among these. */
export async function tabsBeside(reach: Reach, ids: ReadonlySet<string>): Promise<Tab[]> {
  const tabs = (await list(reach)).filter(({ id }) => !ids.has(id));
  return tabs.map((tab) => ({ ...tab, ...unknownState }));
}

export async function tabIds(cdp: CdpConnection): Promise<Set<string>> {
  const { targetInfos } = await cdp.send('Target.getTargets', {});
  return new Set(targetInfos.filter(isTab).map(({ targetId }) => targetId));
}

/** Settles when the tab is gone: Chromium answers some time before it closes the tab. */
export async function closeTarget(cdp: CdpConnection, targetId: string): Promise<void> {
  await cdp.send('Target.closeTarget', { targetId });
  await lookUntil(
    () => tabIds(cdp),
    (ids) => !ids.has(targetId),
    { firstMs: lookMs },
  );
}

async function list({ client, endpoint, signal }: Reach): Promise<Listed[]> {
  const tabs = await getFromEndpoint(client, endpoint, '/json/list', listed, signal);
  const pages = tabs.filter(isTab).slice(0, maxTabs * 2);
  return pages.map(({ id, title, url, faviconUrl }, index) => ({
    id,
    url: saidUrl(url),
    title: said(unescaped(title), maxTitleLength),
    isActive: index === 0,
    faviconUrl: faviconUrl ? saidUrl(faviconUrl) : null,
  }));
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };

/** Chromium escapes titles as HTML in this list, and nowhere else. */
function unescaped(title: string): string {
  return title.replace(/&(amp|lt|gt|quot|#39);/g, (_all, name: string) => entities[name] ?? '');
}

async function withState({ decisionOn }: Reach, tab: Listed, state: TabState): Promise<Tab> {
  const { failure } = state;
  return {
    ...tab,
    ...state,
    // Chromium keeps no icons when it has no window.
    faviconUrl: tab.faviconUrl ?? state.faviconUrl,
    failure: failure && (await explained(failure, tab.url, decisionOn)),
  };
}

/** Runs in our own world, which the page's scripts cannot change. The page still controls its elements. */
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

/** The state of a tab. It answers no dialogs: a person may be looking at one. */
async function stateOf(cdp: CdpConnection, targetId: string): Promise<TabState> {
  try {
    const { sessionId } = await cdp.send('Target.attachToTarget', { targetId, flatten: true });
    const state = await stateIn(cdp, targetId, sessionId, stateMs);
    await cdp.send('Target.detachFromTarget', { sessionId });
    return state;
  } catch (error) {
    if (error instanceof CommandRefused) return unknownState; // The tab was closed in the meantime.
    throw error;
  }
}

/** The state of a tab that is attached already. */
async function stateIn(cdp: CdpConnection, targetId: string, sessionId: string, withinMs: number): Promise<TabState> {
  const crash = Promise.withResolvers<TabState>();
  const note = (_event: object, from: string | undefined) => {
    if (from === sessionId) crash.resolve({ ...unknownState, status: 'crashed' });
  };
  cdp.on('Inspector.targetCrashed', note);
  try {
    cdp.send('Inspector.enable', {}, sessionId).catch(() => undefined);
    const answer = ask(cdp, targetId, sessionId).catch(() => unknownState);
    return await orAfter(Promise.race([answer, crash.promise]), withinMs, unknownState);
  } finally {
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

/** An icon's address; null when it is not a web or data address, or is too long. A truncated address would be wrong. */
function iconOf(text: string): string | null {
  const url = URL.parse(text);
  if (url?.protocol === 'data:') return said(url.href, maxIconLength) === url.href ? url.href : null;
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:';
  return isWeb && saidUrl(url.href) === url.href ? url.href : null;
}
