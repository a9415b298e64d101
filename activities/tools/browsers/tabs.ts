import { DomainError } from '../../../base/errors.ts';
import { objectSchema, type ServerTool, serverTool, type ToolContext } from '../tool.ts';
import { act, drives } from './drive.ts';
import { aboutTab, inLines, pageSays } from './pageSays.ts';
import { type BrowserInput, type BrowserToolDeps, browserProperties, frontTab, type OpenBrowser } from './place.ts';

type Action = 'list' | 'switch' | 'close' | 'back' | 'forward' | 'reload';
type Input = BrowserInput & { action: Action; tabId?: string };

/** Lists a browser's tabs, switches between them, closes them and navigates in their history. */
export function browserTabsTool(deps: BrowserToolDeps): ServerTool {
  return serverTool<Input>({
    ...act,
    name: 'browser_tabs',
    description:
      'Lists the browser’s tabs, brings a tab to the front (the other browser tools act on the front tab), closes a tab, goes back or forward, or reloads.',
    inputSchema: objectSchema(
      {
        action: { enum: ['list', 'switch', 'close', 'back', 'forward', 'reload'] },
        tabId: {
          type: 'string',
          minLength: 1,
          maxLength: 200,
          description: 'The tab to act on. Default: the front tab.',
        },
        ...browserProperties,
      },
      ['action'],
    ),
    async run(input, context) {
      if (input.action === 'switch' && input.tabId === undefined) {
        throw new DomainError('invalid', 'TAB_MISSING', 'This action needs `tabId`. The action "list" lists the tabs.');
      }
      return drives(deps, context, input, async (open) => {
        return { sessionId: open.session.id, page: pageSays(await outcomeOf(open, input, context)) };
      });
    },
  });
}

async function outcomeOf(open: OpenBrowser, { action, tabId }: Input, context: ToolContext): Promise<string> {
  const { browser } = open;
  const { signal } = context;
  if (action === 'list') return listed(open, context);
  const id = tabId ?? (await frontTab(open, context));
  if (action === 'close') {
    await browser.closeTab(id, { signal });
    return listed(open, context);
  }
  if (action === 'switch') return inLines(await browser.activateTab(id, { signal }));
  return inLines(await browser.navigate(id, { action }, { signal }));
}

async function listed({ browser }: OpenBrowser, { signal }: ToolContext): Promise<string> {
  return (await browser.tabs({ signal })).map(aboutTab).join('\n');
}
