import type { ErrorRequestHandler } from 'express';
import { loggable } from '../../../telemetry/loggable.ts';
import { presentFailure } from '../../frame/errors.ts';
import { describeFailure } from '../../frame/failures.ts';
import { html } from '../../frame/pages/html.ts';

const titles: Record<number, string> = {
  401: 'This browser has no access',
  404: 'There is no such link',
  410: 'This link has ended',
  502: 'The program does not answer',
  503: 'This is not available now',
};

/**
 * Answers a failure on a link's own host: a page for a person, a problem for a program. It loads nothing from the API.
 */
export function linkErrors(): ErrorRequestHandler {
  return (error: unknown, req, res, _next) => {
    const failure = describeFailure(error);
    res.locals.failureCode = failure.code;
    if (failure.status === 500) req.log.error({ err: loggable(error), requestId: req.id }, failure.code);
    if (res.headersSent) return void res.destroy();
    res.set({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
    if (failure.retryAfterSeconds !== undefined) res.set('retry-after', String(failure.retryAfterSeconds));
    const problem = presentFailure(failure, req);
    if (!(req.get('accept') ?? '').includes('text/html')) {
      res.status(failure.status).type('application/problem+json').json(problem);
      return;
    }
    const isAsleep = failure.code === 'COMPUTER_NOT_RUNNING';
    const title = isAsleep ? 'The computer is not running' : (titles[failure.status] ?? 'This did not work');
    res.set(
      'content-security-policy',
      "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
    );
    const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:34em;margin:15vh auto;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.3em}small{color:#666}</style>
</head>
<body>
<h1>${title}</h1>
<p>${failure.detail}</p>
<small>${failure.code} · request ${String(req.id)}</small>
</body>
</html>
`;
    res.status(failure.status).type('text/html').send(page.text);
  };
}
