import type { RequestHandler } from 'express';
import type { RouteDeps } from '../frame/deps.ts';
import { html } from '../frame/pages/html.ts';
import { iconFile, sendPage } from '../frame/pages/page.ts';
import { createRouter } from '../frame/router.ts';

/** For a visitor who opens the API's address in a browser. It says nothing that only the API's users may know. */
export function frontPageRoutes(_deps: RouteDeps) {
  const router = createRouter();
  router.get('/', (_req, res) => {
    const body = html`
<p>A backend for teams that work with AI agents: chat, automations, computers, apps, files,
git, secrets and billing. It runs here, and has no pages to work in: programs use its API.</p>
<ul>
<li><a href="/docs">Reference</a>: every operation, to read and to try</li>
<li><a href="/openapi.yaml">OpenAPI document</a>, for generators of clients</li>
<li><a href="/auth/sign-in">Sign in</a>, for a code that a program exchanges for a token</li>
<li><a href="/readyz">Status</a> of the service and of the parts that it needs</li>
</ul>`;
    sendPage(res, { title: 'The Atrium API', body });
  });
  return router;
}

/** Browsers ask for it when a page names no icon. They recognize the format by the content type, not by the name. */
export function favicon(): RequestHandler {
  return (_req, res) => res.sendFile(iconFile, { maxAge: '1h' });
}
