/** In characters. More is no help to a model, and it stands with its message in every later prompt too. */
const maxLength = 8_000;
const maxTitleLength = 200;
const maxTabsPerPane = 30;

interface Tab {
  tabId: string;
  type: string;
  title: string;
  isActive: boolean;
}

interface Pane {
  paneId: string;
  isActive: boolean;
  tabs?: Tab[];
  [further: string]: unknown;
}

interface Snapshot {
  capturedAt?: number;
  timezone?: string | null;
  ipLocation?: { timezone?: string; source?: string; [field: string]: unknown } | null;
  activePaneId?: string | null;
  panes?: Pane[];
  [further: string]: unknown;
}

/**
 * What a client has said of its device, for the model to read: the sender's time and place, and what they have open. It is trusted for
 * nothing but that, and cannot end the element that it stands in.
 */
export function describeSender(context: Record<string, unknown>): string | undefined {
  const { agentContextSnapshot, openTabs, deviceComputerId } = context as {
    agentContextSnapshot?: Snapshot;
    openTabs?: Pane[];
    deviceComputerId?: string;
  };
  const { capturedAt, timezone, ipLocation, panes, activePaneId, ...further } = agentContextSnapshot ?? {};
  const { source: _, ...location } = ipLocation ?? {};
  const told = {
    localTime: localTime(capturedAt, timezone ?? ipLocation?.timezone),
    timezone: timezone ?? undefined,
    approximateLocation: Object.keys(location).length > 0 ? location : undefined,
    deviceComputerId,
    openPanes: openTabs?.map(shorten),
    panes: panes?.map(shorten),
    activePaneId: activePaneId ?? undefined,
    ...Object.fromEntries(Object.entries(further).filter(([, value]) => value !== null)),
  };
  if (Object.values(told).every((value) => value === undefined)) return undefined;
  const text = JSON.stringify(told).replaceAll('<', '\\u003c');
  const whole = text.length <= maxLength ? text : `${text.slice(0, maxLength)} [… the rest is left out]`;
  return `<sender-context note="what the sender's app says of itself">\n${whole}\n</sender-context>`;
}

/** As the sender's clock shows it. A time zone or a time that nobody knows is left out. */
function localTime(capturedAt: number | undefined, timezone: string | undefined): string | undefined {
  if (capturedAt === undefined) return undefined;
  try {
    const style = { dateStyle: 'full', timeStyle: 'long', timeZone: timezone ?? 'UTC' } as const;
    return new Intl.DateTimeFormat('en-GB', style).format(new Date(capturedAt));
  } catch {
    const time = new Date(capturedAt);
    return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
  }
}

/** The active tab first, so that it is there when many are left out. */
function shorten(pane: Pane): Pane {
  if (pane.tabs === undefined) return pane;
  const tabs = pane.tabs.toSorted((one, other) => Number(other.isActive) - Number(one.isActive));
  const kept = tabs.slice(0, maxTabsPerPane).map((tab) => ({ ...tab, title: tab.title.slice(0, maxTitleLength) }));
  const left = tabs.length - kept.length;
  return { ...pane, tabs: kept, ...(left > 0 && { furtherTabs: left }) };
}
