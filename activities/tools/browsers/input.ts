import { DomainError } from '../../../base/errors.ts';
import type { PageAction, Place } from '../../../integrations/browsers/types.ts';
import { onDisplay } from '../../../integrations/desktops/picture.ts';
import { objectSchema, type ServerTool, serverTool, type ToolContext } from '../tool.ts';
import { act, drives } from './drive.ts';
import { inLines, pageSays } from './pageSays.ts';
import { type BrowserInput, type BrowserToolDeps, browserProperties, frontTab, type OpenBrowser } from './place.ts';

const longestText = 20_000;
const mostOptions = 50;
const farthest = 20_000;

const element = {
  type: 'string',
  minLength: 1,
  maxLength: 80,
  pattern: '^[A-Za-z0-9_-]+$',
  description: 'The reference of the element, without brackets.',
};
const coordinate = { type: 'integer', minimum: 0, maximum: 16_383 };

interface At {
  element?: string;
  x?: number;
  y?: number;
}

/** Tools that act on the page of the front tab. */
export function browserInputTools(deps: BrowserToolDeps): ServerTool[] {
  /** Acts on the page, and describes the page afterwards. */
  function does(
    input: BrowserInput,
    context: ToolContext,
    actionOf: (open: OpenBrowser, tabId: string) => PageAction | Promise<PageAction>,
    { acceptDialogs = false }: { acceptDialogs?: boolean } = {},
  ): Promise<object> {
    return drives(deps, context, input, async (open) => {
      const tabId = await frontTab(open, context);
      const options = { signal: context.signal, dialogs: { accept: acceptDialogs } };
      const outcome = await open.browser.act(tabId, await actionOf(open, tabId), options);
      return { sessionId: open.session.id, page: pageSays(inLines(outcome)) };
    });
  }

  return [
    serverTool<BrowserInput & At & { button: 'left' | 'middle' | 'right'; count: 1 | 2 | 3; acceptDialogs: boolean }>({
      ...act,
      name: 'browser_click',
      description: 'Clicks an element of the page by its reference, or a point in the picture of browser_screenshot.',
      inputSchema: objectSchema({
        element,
        x: coordinate,
        y: coordinate,
        button: { enum: ['left', 'middle', 'right'], default: 'left' },
        count: { type: 'integer', minimum: 1, maximum: 3, default: 1 },
        acceptDialogs: {
          type: 'boolean',
          default: false,
          description: 'Whether to accept dialogs that the click opens. If false, they are dismissed.',
        },
        ...browserProperties,
      }),
      async run({ button, count, acceptDialogs, ...input }, context) {
        const at = placeOf(input);
        return does(
          input,
          context,
          async (open, tabId) => ({ kind: 'click', at: await onPage(open, tabId, at, context), button, count }),
          { acceptDialogs },
        );
      },
    }),

    serverTool<BrowserInput & { element: string; text: string; submit: boolean }>({
      ...act,
      name: 'browser_type',
      description: 'Replaces the text of a field of the page.',
      inputSchema: objectSchema(
        {
          element,
          text: { type: 'string', maxLength: longestText },
          submit: { type: 'boolean', default: false, description: 'Whether to press Enter afterwards.' },
          ...browserProperties,
        },
        ['element', 'text'],
      ),
      run: ({ element: ref, text, submit, ...input }, context) =>
        does(input, context, () => ({ kind: 'type', ref, text, isSubmitted: submit })),
    }),

    serverTool<BrowserInput & { element: string; options: string[] }>({
      ...act,
      name: 'browser_select',
      description: 'Selects options of a list by their labels.',
      inputSchema: objectSchema(
        {
          element,
          options: { type: 'array', maxItems: mostOptions, items: { type: 'string', maxLength: 1_000 } },
          ...browserProperties,
        },
        ['element', 'options'],
      ),
      run: ({ element: ref, options, ...input }, context) =>
        does(input, context, () => ({ kind: 'select', ref, values: options })),
    }),

    serverTool<BrowserInput & { keys: string }>({
      ...act,
      name: 'browser_press',
      description:
        'Presses a key or a key combination, such as Enter, Escape or ctrl+a, in the focused element of the page.',
      inputSchema: objectSchema({ keys: { type: 'string', minLength: 1, maxLength: 60 }, ...browserProperties }, [
        'keys',
      ]),
      run: ({ keys, ...input }, context) => does(input, context, () => ({ kind: 'press', keys })),
    }),

    serverTool<BrowserInput & { down: number; element?: string }>({
      ...act,
      name: 'browser_scroll',
      description:
        'Scrolls the page, or the area that contains an element. browser_read also shows content that is out of view.',
      inputSchema: objectSchema({
        down: {
          type: 'integer',
          minimum: -farthest,
          maximum: farthest,
          default: 600,
          description: 'Pixels to scroll down. Negative values scroll up.',
        },
        element,
        ...browserProperties,
      }),
      run: ({ down, element: ref, ...input }, context) =>
        does(input, context, () => ({ kind: 'scroll', deltaY: down, ...(ref !== undefined && { at: { ref } }) })),
    }),
  ];
}

function placeOf({ element: ref, x, y }: At): Place {
  if (ref !== undefined && x === undefined && y === undefined) return { ref };
  if (ref === undefined && x !== undefined && y !== undefined) return { x, y };
  throw new DomainError('invalid', 'PLACE_UNCLEAR', 'Give either an element, or a point with `x` and `y`.');
}

/** Maps a point of the model's picture to the page, which may be larger than the picture. */
async function onPage(
  { browser }: OpenBrowser,
  tabId: string,
  at: Place,
  { signal }: Pick<ToolContext, 'signal'>,
): Promise<Place> {
  if ('ref' in at) return at;
  const { width, height, viewport } = await browser.shown(tabId, { signal });
  if (at.x < width && at.y < height) return onDisplay(at, viewport);
  const detail = `(${at.x}, ${at.y}) is outside the page. Its picture is ${width} pixels wide and ${height} pixels high.`;
  throw new DomainError('unprocessable', 'POINT_OUTSIDE', detail);
}
