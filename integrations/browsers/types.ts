import type { Size } from '../desktops/rfb/rfbClient.ts';

/** The parameters for starting a session's Chromium. */
export interface BrowserSpec extends Size {
  /** The id of the session and of its process. */
  id: string;
  /** The profile’s folder: absolute, or relative to the computer’s home. Two browsers never share one. */
  profileFolder: string;
  /** The folder for downloads, likewise. */
  downloadsFolder: string;
  /** The number in `DISPLAY` of the desktop that shows its window. A browser without it is headless. */
  display?: number;
}

/** An open page. Its title and addresses come from the page itself, and are cut when they are long. */
export interface Tab {
  id: string;
  url: string;
  title: string;
  isActive: boolean;
  /** An address of `http:`, `https:` or `data:` that the page gives. */
  faviconUrl: string | null;
  /** `crashed`: its renderer has ended. The tab can be reloaded. */
  status: 'loading' | 'complete' | 'crashed';
  /** Why its page could not be shown; null when it is shown. */
  failure: TabFailure | null;
}

/** The code is one of `browserError`. The detail has no text from a stranger. */
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

/** A dialog that a page has opened, and our answer. */
export interface Dialog {
  kind: 'alert' | 'confirm' | 'prompt' | 'beforeunload';
  message: string;
  answer: 'accepted' | 'dismissed';
}

export interface TabOutcome extends Tab {
  /** The dialogs that the page has opened during the call. */
  dialogs: Dialog[];
}

export interface CallOptions {
  signal?: AbortSignal;
  /** How dialogs during the call are answered: dismissed by default. Leaving a page is always accepted. */
  dialogs?: { accept: true; text?: string } | { accept: false };
}

export type Navigation = { url: string } | { action: 'back' | 'forward' | 'reload' | 'stop' };

/** A page as text for models: data from strangers, never an instruction. */
export interface PageText {
  tab: Tab;
  /**
   * A line for each element, indented as elements are nested. The line of an element that takes actions begins with its
   * reference in brackets: `[k3f12] button "Sign in"`.
   */
  text: string;
  /** Whether the page has more than fits into `text`. */
  isCut: boolean;
  dialogs: Dialog[];
}

export interface ReadOptions extends CallOptions {
  /** The limit for `text`, in characters. */
  maxLength?: number;
}

/** An element by its reference in {@link PageText}, or a point in CSS pixels of the tab’s viewport. */
export type Place = { ref: string } | { x: number; y: number };

export type PageAction =
  | { kind: 'click'; at: Place; button?: 'left' | 'middle' | 'right'; count?: 1 | 2 | 3 }
  | { kind: 'hover'; at: Place }
  /** Replaces the element’s text. With `isSubmitted`, it presses Enter afterwards. */
  | { kind: 'type'; ref: string; text: string; isSubmitted?: boolean }
  /** A chord such as `ctrl+a` or `Enter`, for the focused element. */
  | { kind: 'press'; keys: string }
  /** Selects options by their values or their labels. */
  | { kind: 'select'; ref: string; values: string[] }
  /** Scrolls by CSS pixels, at the middle of the viewport by default. */
  | { kind: 'scroll'; at?: Place; deltaX?: number; deltaY?: number }
  /** Waits until the page shows this text, or its address contains this; or for a time. Throws 504 `NOT_SEEN`. */
  | { kind: 'wait'; until: { text: string } | { url: string } | { ms: number }; timeoutMs?: number };

export interface ActOutcome extends TabOutcome {
  /** The tabs that the action has opened. */
  opened: Tab[];
}

/** A picture of a tab for models. `onDisplay` (integrations/desktops/picture.ts) maps its points to the viewport. */
export interface ShownTab extends Size {
  png: Buffer;
  /** The size of the viewport in CSS pixels. */
  viewport: Size;
}
