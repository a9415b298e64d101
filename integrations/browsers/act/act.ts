import { setTimeout as delay } from 'node:timers/promises';
import { lookUntil } from '../../../base/async.ts';
import { CommandRefused } from '../cdp/connection.ts';
import { browserError } from '../failures.ts';
import { settleAfter } from '../navigate.ts';
import type { Page } from '../page.ts';
import { evaluateIn, framesOf } from '../read/frames.ts';
import type { PageAction, Place } from '../types.ts';
import { PageElement } from './element.ts';
import { click, hover, press, turnWheel, typeText } from './input.ts';
import { prepareTyping, selectOptions, setValue } from './scripts.ts';

/** A navigation that an action causes begins within this time. */
const echoMs = 60;
const usualWheel = 600;
const usualWaitMs = 10_000;
/** The longest time that an action may wait. */
export const mostWaitMs = 60_000;
const lookMs = 150;

/** Acts on a page as a person would, and waits for a navigation that this causes. Throws what `Browser.act` does. */
export async function act(page: Page, action: PageAction, signal: AbortSignal): Promise<void> {
  if (action.kind === 'wait') return wait(page, action, signal);
  await page.show();
  const { goingTo, stops, loading } = page;
  await perform(page, action);
  if (await page.until(() => page.goingTo !== goingTo, echoMs)) await settleAfter(page, loading.loaderId, stops);
}

async function perform(page: Page, action: Exclude<PageAction, { kind: 'wait' }>): Promise<void> {
  switch (action.kind) {
    case 'click':
      return click(page, await pointOf(page, action.at), action.button ?? 'left', action.count ?? 1);
    case 'hover':
      return hover(page, await pointOf(page, action.at));
    case 'press':
      return press(page, action.keys);
    case 'type':
      return type(page, action);
    case 'select':
      return select(page, action);
    case 'scroll': {
      const { at, deltaX = 0, deltaY = deltaX === 0 ? usualWheel : 0 } = action;
      return turnWheel(page, at === undefined ? await middleOf(page) : await pointOf(page, at), { deltaX, deltaY });
    }
  }
}

async function pointOf(page: Page, at: Place): Promise<{ x: number; y: number }> {
  return 'ref' in at ? (await PageElement.find(page, at.ref)).point() : at;
}

async function middleOf(page: Page): Promise<{ x: number; y: number }> {
  const { cssVisualViewport: view } = await page.send('Page.getLayoutMetrics', {});
  return { x: view.clientWidth / 2, y: view.clientHeight / 2 };
}

async function type(page: Page, { ref, text, isSubmitted }: Extract<PageAction, { kind: 'type' }>): Promise<void> {
  const element = await PageElement.find(page, ref);
  const how = await element.call(prepareTyping);
  if (how === 'disabled') throw refused('This element takes no text now: it is disabled or read-only.');
  if (how === 'never') throw refused('This element takes no text. Click it, or type into a text field.');
  if (how === 'typed') await typeText(page, text);
  else if ((await element.call(setValue, text)) !== true) {
    throw refused('This element does not take this value. A date is such as 2030-12-31, a time such as 09:30.');
  }
  if (isSubmitted === true) await press(page, 'Enter');
}

const selectRefusals: Readonly<Record<string, string>> = {
  never: 'This element is not a list of options. Click it, and then click the option that it shows.',
  disabled: 'This element, or one of these options, is disabled.',
  single: 'This element takes exactly one option.',
  missing: 'This element has no such option. Read the page again.',
};

async function select(page: Page, { ref, values }: Extract<PageAction, { kind: 'select' }>): Promise<void> {
  const fault = await (await PageElement.find(page, ref)).call(selectOptions, values);
  if (fault !== '') throw refused(selectRefusals[String(fault)] ?? 'This element cannot be selected from.');
}

async function wait(page: Page, action: Extract<PageAction, { kind: 'wait' }>, signal: AbortSignal): Promise<void> {
  const { until, timeoutMs = usualWaitMs } = action;
  if ('ms' in until) {
    await delay(Math.min(until.ms, mostWaitMs), undefined, { signal });
    return;
  }
  const expression =
    'url' in until
      ? `location.href.includes(${JSON.stringify(until.url)})`
      : `(document.body?.innerText ?? '').includes(${JSON.stringify(until.text)})`;
  const patience = { firstMs: lookMs, forMs: Math.min(timeoutMs, mostWaitMs), signal };
  if (await lookUntil(() => holdsSomewhere(page, expression), Boolean, patience)) return;
  throw browserError('NOT_SEEN', 'The text or address did not appear in time.');
}

/** Whether the expression is true in one of the page’s frames. A frame that is changing counts as false this time. */
async function holdsSomewhere(page: Page, expression: string): Promise<boolean> {
  const looks = (await framesOf(page)).map(async (frame) => {
    try {
      return (await evaluateIn(frame, expression)) === true;
    } catch (error) {
      if (error instanceof CommandRefused) return false;
      throw error;
    }
  });
  return (await Promise.all(looks)).includes(true);
}

function refused(detail: string): Error {
  return browserError('ACTION_REFUSED', detail);
}
