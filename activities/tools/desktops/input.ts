import { DomainError } from '../../../base/errors.ts';
import { chordOf, keysymOf, UnknownKey } from '../../../integrations/desktops/input/keys.ts';
import { type Button, click, drag, press, scroll } from '../../../integrations/desktops/input/pointer.ts';
import type { RfbClient } from '../../../integrations/desktops/rfb/rfbClient.ts';
import { beforehand, objectSchema, type ServerTool, serverTool, type ToolContext } from '../tool.ts';
import { inControl } from './control.ts';
import { type DesktopInput, type DesktopToolDeps, desktopFor, desktopProperties, pointOn } from './place.ts';

/** How many characters are typed between two checks for a person who takes over. */
const charactersAtOnce = 20;
const longestText = 5_000;
const mostSteps = 50;
const mostPresses = 100;
const driveMs = 60_000;

const act = {
  access: 'act',
  role: 'editor',
  scope: 'computers:write',
  timeoutMs: 120_000,
  // Text from before the crash must not be typed again.
  afterCrash: 'never',
} as const;
const coordinate = { type: 'integer', minimum: 0, maximum: 16_383 };
const point = {
  x: { ...coordinate, description: 'Pixels from the left of the screenshot.' },
  y: { ...coordinate, description: 'Pixels from the top of the screenshot.' },
};
const modifiers = {
  type: 'string',
  maxLength: 40,
  pattern: '^[A-Za-z]+(\\+[A-Za-z]+)*$',
  description: 'Keys to hold during the action, such as ctrl or ctrl+shift.',
};
const oneAtATime = 'Make only one desktop input call per step, because calls of one step run in parallel.';

type Drive = (rfb: RfbClient, stillInControl: () => Promise<void>) => Promise<unknown>;

interface At {
  x: number;
  y: number;
  modifiers?: string;
}

/** Tools that type and point on a desktop while the turn is in control of it. */
export function desktopInputTools(deps: DesktopToolDeps): ServerTool[] {
  /** Acts on a desktop while this turn is in control, and returns the desktop's id. */
  async function drive(input: DesktopInput, context: ToolContext, how: Drive): Promise<object> {
    const { session, server } = await beforehand(desktopFor(deps, context.turn, input));
    const { signal } = context;
    const screen = { desktopId: session.id, surface: 'desktop', sessionId: session.id } as const;
    const result = await inControl(deps.database, screen, context, (stillInControl) =>
      server.drive((rfb) => how(rfb, stillInControl), { signal, timeoutMs: driveMs }),
    );
    return { sessionId: session.id, ...(typeof result === 'object' && result) };
  }

  return [
    serverTool<DesktopInput & At & { button: Button; count: number; dragTo?: { x: number; y: number } }>({
      ...act,
      name: 'desktop_click',
      description: `Clicks a point on a desktop, or drags from one point to another. ${oneAtATime}`,
      inputSchema: objectSchema(
        {
          ...point,
          button: { enum: ['left', 'middle', 'right'], default: 'left' },
          count: { type: 'integer', minimum: 1, maximum: 3, default: 1, description: '2 is a double click.' },
          dragTo: {
            ...objectSchema(point, ['x', 'y']),
            description: 'Drags to this point and releases the button there.',
          },
          modifiers,
          ...desktopProperties,
        },
        ['x', 'y'],
      ),
      async run(input, context) {
        const keys = chord(input.modifiers);
        return drive(input, context, (rfb) => {
          const at = pointOn(rfb.size, input);
          const { button, count, dragTo } = input;
          if (dragTo === undefined) return click(rfb, at, { button, count, keys });
          return drag(rfb, at, pointOn(rfb.size, dragTo), { button, keys });
        });
      },
    }),

    serverTool<DesktopInput & At & { down: number; right: number }>({
      ...act,
      name: 'desktop_scroll',
      description: `Turns the mouse wheel at a point of a desktop. ${oneAtATime}`,
      inputSchema: objectSchema(
        {
          ...point,
          down: {
            type: 'integer',
            minimum: -mostSteps,
            maximum: mostSteps,
            default: 0,
            description: 'Steps to scroll down. Negative values scroll up.',
          },
          right: {
            type: 'integer',
            minimum: -mostSteps,
            maximum: mostSteps,
            default: 0,
            description: 'Steps to scroll right. Negative values scroll left.',
          },
          modifiers,
          ...desktopProperties,
        },
        ['x', 'y'],
      ),
      async run(input, context) {
        const keys = chord(input.modifiers);
        const { down, right } = input;
        return drive(input, context, (rfb) => scroll(rfb, pointOn(rfb.size, input), { down, right, keys }));
      },
    }),

    serverTool<DesktopInput & { text: string }>({
      ...act,
      name: 'desktop_type',
      description: `Types text on a desktop into the focused element. A line break presses the Return key. For single keys and shortcuts use desktop_key. ${oneAtATime}`,
      inputSchema: objectSchema(
        { text: { type: 'string', minLength: 1, maxLength: longestText }, ...desktopProperties },
        ['text'],
      ),
      async run(input, context) {
        const keys = inWords(() => [...input.text.replaceAll('\r\n', '\n')].map(keysymOf));
        return drive(input, context, async (rfb, stillInControl) => {
          for (let at = 0; at < keys.length; at += charactersAtOnce) {
            await stillInControl();
            for (const key of keys.slice(at, at + charactersAtOnce)) {
              rfb.key(key, true);
              rfb.key(key, false);
            }
            await rfb.settled();
          }
          return { typed: keys.length };
        });
      },
    }),

    serverTool<DesktopInput & { keys: string; times: number }>({
      ...act,
      name: 'desktop_key',
      description: `Presses a key or a key combination on a desktop, such as Return, Escape, PageDown, ctrl+c, alt+F4 or shift+Tab. ${oneAtATime}`,
      inputSchema: objectSchema(
        {
          keys: { type: 'string', minLength: 1, maxLength: 60 },
          times: { type: 'integer', minimum: 1, maximum: mostPresses, default: 1 },
          ...desktopProperties,
        },
        ['keys'],
      ),
      async run(input, context) {
        const keys = chord(input.keys);
        return drive(input, context, async (rfb, stillInControl) => {
          for (let n = 0; n < input.times; n++) {
            await stillInControl();
            await press(rfb, keys);
          }
        });
      },
    }),
  ];
}

function chord(text: string | undefined): number[] {
  return text === undefined ? [] : inWords(() => chordOf(text));
}

function inWords<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof UnknownKey) throw new DomainError('unprocessable', 'KEY_UNKNOWN', error.message);
    throw error;
  }
}
