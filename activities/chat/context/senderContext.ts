import { firstOf } from '../../../base/text.ts';

/** In characters. A longer context does not help a model, and it stays with its message in every later prompt. */
const maxLength = 8_000;
const maxTitleLength = 200;
const maxTabsPerPane = 30;

/** The contract specifies only a pane's id and whether it is active; every other field may hold anything. */
type Further = Record<string, unknown>;

interface Snapshot {
  capturedAt?: number;
  timezone?: string | null;
  ipLocation?: { timezone?: string; source?: string; [field: string]: unknown } | null;
  activePaneId?: string | null;
  panes?: Further[];
  [further: string]: unknown;
}

/**
 * The state of the sender's device as text for the model: local time, place, and open panes and tabs. The client's text
 * is not trusted, and it cannot close the element that it stands in.
 */
export function describeSender(context: Record<string, unknown>): string | undefined {
  const { agentContextSnapshot, openTabs, deviceComputerId } = context as {
    agentContextSnapshot?: Snapshot;
    openTabs?: Further[];
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
  const whole = text.length <= maxLength ? text : `${firstOf(text, maxLength)} [… the rest is left out]`;
  return `<sender-context note="what the sender's app says of itself">\n${whole}\n</sender-context>`;
}

/** In the sender's local time. An unknown time zone or an invalid time is left out. */
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

/** The active tab comes first, so that it is kept if many are left out. */
function shorten(pane: Further): Further {
  if (!Array.isArray(pane.tabs)) return pane;
  const tabs = pane.tabs.filter((tab): tab is Further => typeof tab === 'object' && tab !== null);
  tabs.sort((one, other) => Number(other.isActive === true) - Number(one.isActive === true));
  const kept = tabs.slice(0, maxTabsPerPane).map((tab) => {
    return typeof tab.title === 'string' ? { ...tab, title: firstOf(tab.title, maxTitleLength) } : tab;
  });
  const left = tabs.length - kept.length;
  return { ...pane, tabs: kept, ...(left > 0 && { furtherTabs: left }) };
}
