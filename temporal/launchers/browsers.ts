import { browser } from '../../workflows/browsers/browser.ts';
import type { LauncherParts } from '../launcherKit.ts';

export function createBrowserLauncher({ kit }: LauncherParts) {
  const browsers = kit.actor(browser, {
    inputOf: (sessionId, limits) => ({ sessionId, ...limits }),
    summary: 'Browser session',
  });
  return { startBrowser: browsers.tell, runningBrowsers: browsers.running };
}
