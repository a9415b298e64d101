import { navigate } from './navigate.ts';
import type { Page } from './page.ts';
import { explained, pageError } from './pageFailures.ts';
import { type Reach, tabOf } from './tabs.ts';
import type { Navigation, TabOutcome } from './types.ts';

/** Takes a page somewhere, and throws what kept it from being shown, as `Browser.navigate` does. */
export async function goTo(reach: Reach, page: Page, to: Navigation): Promise<TabOutcome> {
  const said = await navigate(page, to);
  const tab = await outcome(reach, page);
  // What is there still has not come of this.
  if ('action' in to && to.action === 'stop') return tab;
  const asked = 'url' in to ? to.url : tab.url;
  const failure = tab.failure ?? (said && (await explained(said, asked, reach.decisionOn)));
  if (failure !== null) throw pageError(failure);
  return tab;
}

export async function outcome(reach: Reach, page: Page): Promise<TabOutcome> {
  return { ...(await tabOf(reach, page)), dialogs: page.dialogs };
}
