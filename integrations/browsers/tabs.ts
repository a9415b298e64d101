import { z } from 'zod';
import type { HostClient } from '../computers/hostClient.ts';
import type { CdpConnection } from './cdp/connection.ts';
import { getFromEndpoint, wrong } from './endpoint.ts';
import { browserError } from './failures.ts';
import { isTab, type Page } from './page.ts';
import { type DecisionOn, explained } from './pageFailures.ts';
import { said, saidUrl } from './said.ts';
import { stateIn, stateOf, type TabState, unknownState } from './tabState.ts';
import type { DevToolsEndpoint, Tab } from './types.ts';

/** Each is a process or more of its computer. */
export const maxTabs = 50;
const maxTitleLength = 1_000;

/** How to ask a browser during one call. */
export interface Reach {
  client: HostClient;
  endpoint: DevToolsEndpoint;
  cdp: CdpConnection;
  signal: AbortSignal;
  decisionOn: DecisionOn;
}

/** As Chromium lists them, the one used last first. */
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

export async function listTabs(reach: Reach): Promise<Tab[]> {
  const tabs = await list(reach);
  return Promise.all(tabs.map(async (tab) => asItIs(reach, tab, await stateOf(reach.cdp, tab.id))));
}

/** One of them, whose page is attached. Throws 404 `TAB_NOT_FOUND`. */
export async function tabOf(reach: Reach, page: Page): Promise<Tab> {
  const [tabs, state] = await Promise.all([list(reach), stateIn(reach.cdp, page.targetId, page.sessionId)]);
  const tab = tabs.find(({ id }) => id === page.targetId);
  if (tab === undefined) throw browserError('TAB_NOT_FOUND', 'The tab was closed meanwhile.');
  return asItIs(reach, tab, state);
}

/** Those that are not among the ids. */
export async function tabsBeside(reach: Reach, ids: ReadonlySet<string>): Promise<Tab[]> {
  const tabs = (await list(reach)).filter(({ id }) => !ids.has(id));
  return tabs.map((tab) => ({ ...tab, ...unknownState }));
}

async function asItIs({ decisionOn }: Reach, tab: Listed, state: TabState): Promise<Tab> {
  const { failure } = state;
  return {
    ...tab,
    ...state,
    // Without a window, Chromium keeps none.
    faviconUrl: tab.faviconUrl ?? state.faviconUrl,
    failure: failure && (await explained(failure, tab.url, decisionOn)),
  };
}

export async function tabIds(cdp: CdpConnection): Promise<Set<string>> {
  const { targetInfos } = await cdp.send('Target.getTargets', {});
  return new Set(targetInfos.filter(isTab).map(({ targetId }) => targetId));
}

async function list({ client, endpoint, signal }: Reach): Promise<Listed[]> {
  const parsed = listed.safeParse(await getFromEndpoint(client, endpoint, '/json/list', signal));
  if (!parsed.success) throw wrong(parsed.error);
  const pages = parsed.data.filter(isTab).slice(0, maxTabs * 2);
  return pages.map(({ id, title, url, faviconUrl }, index) => ({
    id,
    url: saidUrl(url),
    title: said(unescaped(title), maxTitleLength),
    isActive: index === 0,
    faviconUrl: faviconUrl ? saidUrl(faviconUrl) : null,
  }));
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };

/** This list has titles as HTML, as nothing else has that Chromium says. */
function unescaped(title: string): string {
  return title.replace(/&(amp|lt|gt|quot|#39);/g, (_all, name: string) => entities[name] ?? '');
}
