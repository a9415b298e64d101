import { z } from 'zod';
import type { HostClient } from '../computers/hostClient.ts';
import { type CdpConnection, CommandRefused } from './cdp/connection.ts';
import { getFromEndpoint, wrong } from './endpoint.ts';
import { browserError } from './failures.ts';
import { isTab, Page } from './page.ts';
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
  const [tabs, status] = await Promise.all([list(reach), statusOfPage(page)]);
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

async function statusOf(cdp: CdpConnection, tabId: string): Promise<Tab['status']> {
  try {
    const page = await Page.attach(cdp, tabId, {});
    const status = await statusOfPage(page);
    await page.detach();
    return status;
  } catch (error) {
    if (error instanceof CommandRefused || isGone(error)) return 'loading';
    throw error;
  }
}

async function statusOfPage(page: Page): Promise<Tab['status']> {
  let state: unknown;
  let isThere = false;
  page.send('Runtime.evaluate', { expression: 'document.readyState', returnByValue: true }).then(
    ({ result }) => {
      state = result.value;
      isThere = true;
      page.tell();
    },
    () => undefined,
  );
  await page.until(() => isThere || page.isCrashed, statusMs);
  if (page.isCrashed) return 'crashed';
  return state === 'complete' ? 'complete' : 'loading';
}

function isGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'TAB_NOT_FOUND';
}
