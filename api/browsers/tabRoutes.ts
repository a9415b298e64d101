import type { Tab } from '../../integrations/browsers/types.ts';
import { requireWebAddress } from '../../models/browsers/sessions.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { Screenshots } from '../frame/screenshots.ts';
import { withBrowser } from './look.ts';

/** A picture of a full page counts as this many pictures of its window. */
const fullPage = 4;

/** The tabs of a browser session as they are now. */
export function browserTabRoutes(deps: RouteDeps) {
  const pictures = new Screenshots();
  const router = createRouter();
  const base = '/api/spaces/:spaceId/browsers/sessions/:sessionId/tabs';

  router.get(base, async (req, res) => {
    const tabs = await withBrowser(deps, pathOf<'listBrowserTabs'>(req), 'looks', (browser) => browser.tabs());
    answer<'listBrowserTabs'>(res, 200, { data: tabs.map(presentTab), nextCursor: null });
  });

  router.post(base, async (req, res) => {
    const { url = 'about:blank' } = bodyOf<'openBrowserTab'>(req) ?? {};
    requireWebAddress(url);
    const ref = pathOf<'openBrowserTab'>(req);
    const tab = await withBrowser(deps, ref, actorOf(req), (browser) => browser.openTab(url));
    answer<'openBrowserTab'>(res, 201, presentTab(tab));
  });

  router.patch(`${base}/:tabId`, async (req, res) => {
    const { tabId, ...ref } = pathOf<'updateBrowserTab'>(req);
    const { url, action } = bodyOf<'updateBrowserTab'>(req);
    if (url !== undefined) requireWebAddress(url);
    const tab = await withBrowser(deps, ref, actorOf(req), (browser): Promise<Tab> => {
      if (url !== undefined) return browser.navigate(tabId, { url });
      return action === undefined ? browser.activateTab(tabId) : browser.navigate(tabId, { action });
    });
    answer<'updateBrowserTab'>(res, 200, presentTab(tab));
  });

  router.delete(`${base}/:tabId`, async (req, res) => {
    const { tabId, ...ref } = pathOf<'closeBrowserTab'>(req);
    await withBrowser(deps, ref, actorOf(req), (browser) => browser.closeTab(tabId));
    res.status(204).end();
  });

  router.get(`${base}/:tabId/screenshot`, async (req, res) => {
    const { tabId, ...ref } = pathOf<'getBrowserScreenshot'>(req);
    const { fullPage: isFullPage = false } = queryOf<'getBrowserScreenshot'>(req);
    const png = await withBrowser(deps, ref, 'looks', (browser, { spaceId, width, height }) => {
      const shown = { id: `${ref.sessionId} ${tabId} ${isFullPage}`, spaceId, width };
      return pictures.of(
        { ...shown, height: isFullPage ? height * fullPage : height },
        { screenshot: () => browser.screenshot(tabId, { isFullPage }) },
      );
    });
    res.set('cache-control', 'no-store').type('image/png').send(png);
  });

  router.get(`${base}/:tabId/pdf`, async (req, res) => {
    const { tabId, ...ref } = pathOf<'getBrowserPdf'>(req);
    const pdf = await withBrowser(deps, ref, 'looks', (browser, { spaceId, width, height }) =>
      pictures.of(
        { id: `${ref.sessionId} ${tabId} pdf`, spaceId, width, height: height * fullPage },
        { screenshot: () => browser.pdf(tabId) },
      ),
    );
    res.set('cache-control', 'no-store').type('application/pdf').send(pdf);
  });

  return router;
}

function presentTab({ id, url, title, isActive, faviconUrl, status, failure }: Tab): AnswerOf<'updateBrowserTab'> {
  return { id, url, title, active: isActive, faviconUrl, status, error: failure };
}
