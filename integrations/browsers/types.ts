import type { Size } from '../desktops/rfb/rfbClient.ts';

/** What of a session its Chromium is started with. */
export interface BrowserSpec extends Size {
  /** The session’s id, and that of the process. */
  id: string;
  /** Where the profile is kept, in the computer’s home: absolute, or relative to the home. Two browsers never share one. */
  profileFolder: string;
  /** Where downloads land, likewise. */
  downloadsFolder: string;
  /** The number in `DISPLAY` of the desktop on which its window is; without it, it has none. */
  display?: number;
}

/** A page that is open in a browser. Its title and addresses are the page’s own word, cut where they are long. */
export interface Tab {
  id: string;
  url: string;
  title: string;
  isActive: boolean;
  /** Of `http:`, `https:` or `data:`; what the page says. */
  faviconUrl: string | null;
  /** `crashed`: what drew it has ended; it can be reloaded. */
  status: 'loading' | 'complete' | 'crashed';
  /** Why what it was to show is not there; null where it is. */
  failure: TabFailure | null;
}

/** With a code of `browserError`; none of its words are a stranger’s. */
export interface TabFailure {
  code:
    | 'URL_REFUSED'
    | 'NAVIGATION_FAILED'
    | 'EGRESS_REFUSED'
    | 'EGRESS_UNRESOLVED'
    | 'EGRESS_UNREACHABLE'
    | 'EGRESS_BUSY';
  detail: string;
}

/** A dialog that a page has opened, and what it was answered. */
export interface Dialog {
  kind: 'alert' | 'confirm' | 'prompt' | 'beforeunload';
  message: string;
  answer: 'accepted' | 'dismissed';
}

export interface TabOutcome extends Tab {
  /** Those that came up meanwhile. */
  dialogs: Dialog[];
}

export interface CallOptions {
  signal?: AbortSignal;
  /** How dialogs that come up meanwhile are answered: dismissed, if it says nothing. Leaving a page is always accepted. */
  dialogs?: { accept: true; text?: string } | { accept: false };
}

export type Navigation = { url: string } | { action: 'back' | 'forward' | 'reload' | 'stop' };

/** What a page says, for models: data of somebody else’s, never an instruction. */
export interface PageText {
  tab: Tab;
  /**
   * A line for each thing, indented as they are nested. What can be acted on begins with its reference in brackets, as
   * in `[k3f12] button "Sign in"`.
   */
  text: string;
  /** Whether there is more than `text` has room for. */
  isCut: boolean;
  dialogs: Dialog[];
}

export interface ReadOptions extends CallOptions {
  /** Of `text`, in characters. */
  maxLength?: number;
}

/** An element by its reference in {@link PageText}, or a point in CSS pixels of the tab’s viewport. */
export type Place = { ref: string } | { x: number; y: number };

export type PageAction =
  | { kind: 'click'; at: Place; button?: 'left' | 'middle' | 'right'; count?: 1 | 2 | 3 }
  | { kind: 'hover'; at: Place }
  /** Replaces what is in the element; with `isSubmitted`, Enter is pressed after it. */
  | { kind: 'type'; ref: string; text: string; isSubmitted?: boolean }
  /** A chord such as `ctrl+a` or `Enter`, for whatever has the focus. */
  | { kind: 'press'; keys: string }
  /** By the values of the options, or by what they are called. */
  | { kind: 'select'; ref: string; values: string[] }
  /** By CSS pixels; at the middle of the viewport, if it says nothing. */
  | { kind: 'scroll'; at?: Place; deltaX?: number; deltaY?: number }
  /** Until the page shows this text, or its address contains this; or for so long. Throws 504 `NOT_SEEN`. */
  | { kind: 'wait'; until: { text: string } | { url: string } | { ms: number }; timeoutMs?: number };

export interface ActOutcome extends TabOutcome {
  /** The tabs that it has opened. */
  opened: Tab[];
}

/** A tab as models are shown it. `onDisplay` (integrations/desktops/shownSize.ts) turns a point of it into one of the viewport. */
export interface ShownTab extends Size {
  png: Buffer;
  /** In CSS pixels. */
  viewport: Size;
}

/** Where a browser takes clients of the DevTools protocol, as its computer sees it. */
export interface DevToolsEndpoint {
  port: number;
  /** Such as `/devtools/browser/6f…`. */
  path: string;
}
