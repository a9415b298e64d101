import { requireWebAddress } from '../../../models/browsers/sessions.ts';
import { objectSchema, type ServerTool, serverTool } from '../tool.ts';
import { act, asController } from './drive.ts';
import { inLines, pageSays } from './pageSays.ts';
import {
  type BrowserInput,
  type BrowserToolDeps,
  browserProperties,
  frontTab,
  reach,
  sessionFor,
  whileItLives,
} from './place.ts';
import { startedSession, startMs } from './start.ts';

const charactersShown = 8_000;

type Input = BrowserInput & { url: string; newTab: boolean; desktopSessionId?: string };

/** Opens a page, and starts a browser first if there is none. */
export function browserOpenTool(deps: BrowserToolDeps): ServerTool {
  return serverTool<Input>({
    ...act,
    name: 'browser_open',
    description:
      'Opens a page in a real browser, with the logins of the space’s browser profile, and shows the page like browser_read. Use it for pages that need clicks, logins or scripts; web_fetch is faster for plain pages.',
    timeoutMs: startMs + act.timeoutMs,
    // A second run finds the session by the call's id, and opens the page again.
    afterCrash: 'again',
    inputSchema: objectSchema(
      {
        url: { type: 'string', minLength: 1, maxLength: 2_000, description: 'http:// or https://' },
        newTab: { type: 'boolean', default: false },
        desktopSessionId: {
          type: 'string',
          minLength: 1,
          maxLength: 80,
          description: 'The desktop session to start the browser on, where people can watch it and take over.',
        },
        ...browserProperties,
      },
      ['url'],
    ),
    async run({ url, newTab, desktopSessionId, sessionId }, context) {
      requireWebAddress(url);
      const { turn, signal } = context;
      const session =
        sessionId === undefined
          ? await startedSession(deps, context, desktopSessionId)
          : await sessionFor(deps, turn, { sessionId });
      const open = await reach(deps, turn, session, 'acts');
      const { browser } = open;
      return whileItLives(deps, open, () =>
        asController(deps, context, open, async () => {
          const outcome = newTab
            ? await browser.openTab(url, { signal })
            : await browser.navigate(await frontTab(open, context), { url }, { signal });
          const { text, isCut } = await browser.read(outcome.id, { maxLength: charactersShown, signal });
          return { sessionId: session.id, page: pageSays(`${inLines(outcome)}\n${text}`), isCut };
        }),
      );
    },
  });
}
