import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { HostClient } from '../computers/hostClient.ts';
import { type CdpConnection, CommandRefused } from './cdp/connection.ts';
import { getFromEndpoint, wrong } from './endpoint.ts';
import { browserError } from './failures.ts';
import { isTab, type Page } from './page.ts';
import { said, saidUrl } from './said.ts';
import type { DevToolsEndpoint, Tab } from './types.ts';

/** Each is a process or more of its computer. */
export const maxTabs = 50;
const maxTitleLength = 1_000;
/** A page that takes longer to say how far it is, is loading. */
const statusMs = 300;

/** How to ask a browser during one call. */
export interface Reach {
  client: HostClient;
  endpoint: DevToolsEndpoint;
  cdp: CdpConnection;
  signal: AbortSignal;
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

type Listed = Omit<Tab, 'status'>;

export async function listTabs(reach: Reach): Promise<Tab[]> {
  const tabs = await list(reach);
  return Promise.all(tabs.map(async (tab) => ({ ...tab, status: await statusOf(reach.cdp, tab.id) })));
}

/** One of them, whose page is attached. Throws 404 `TAB_NOT_FOUND`. */
export async function tabOf(reach: Reach, page: Page): Promise<Tab> {
  const [tabs, status] = await Promise.all([list(reach), statusIn(reach.cdp, page.sessionId)]);
  const tab = tabs.find(({ id }) => id === page.targetId);
  if (tab === undefined) throw browserError('TAB_NOT_FOUND', 'The tab was closed meanwhile.');
  return { ...tab, status };
}

/** Those that are not among the ids. */
export async function tabsBeside(reach: Reach, ids: ReadonlySet<string>): Promise<Tab[]> {
  const tabs = (await list(reach)).filter(({ id }) => !ids.has(id));
  return tabs.map((tab) => ({ ...tab, status: 'loading' }));
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
    title: said(title, maxTitleLength),
    isActive: index === 0,
    faviconUrl: faviconUrl ? saidUrl(faviconUrl) : null,
  }));
}

/** Only looks: whoever is shown a dialog by this tab is not robbed of it. */
async function statusOf(cdp: CdpConnection, targetId: string): Promise<Tab['status']> {
  try {
    const { sessionId } = await cdp.send('Target.attachToTarget', { targetId, flatten: true });
    const status = await statusIn(cdp, sessionId);
    await cdp.send('Target.detachFromTarget', { sessionId });
    return status;
  } catch (error) {
    if (error instanceof CommandRefused) return 'loading'; // it was closed meanwhile
    throw error;
  }
}

async function statusIn(cdp: CdpConnection, sessionId: string): Promise<Tab['status']> {
  const crash = Promise.withResolvers<Tab['status']>();
  const note = (_event: object, of: string | undefined) => of === sessionId && crash.resolve('crashed');
  const given = new AbortController();
  cdp.on('Inspector.targetCrashed', note);
  try {
    cdp.send('Inspector.enable', {}, sessionId).catch(() => undefined);
    const asked = { expression: 'document.readyState', returnByValue: true } as const;
    const answer = cdp.send('Runtime.evaluate', asked, sessionId).then(
      ({ result }): Tab['status'] => (result.value === 'complete' ? 'complete' : 'loading'),
      (): Tab['status'] => 'loading',
    );
    const late = delay<Tab['status']>(statusMs, 'loading', { signal: given.signal });
    return await Promise.race([answer, crash.promise, late]);
  } finally {
    given.abort();
    cdp.off('Inspector.targetCrashed', note);
  }
}
