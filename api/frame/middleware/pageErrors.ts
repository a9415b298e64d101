import type { ErrorRequestHandler, Request } from 'express';
import { loggable } from '../../../telemetry/loggable.ts';
import { describeFailure } from '../failures.ts';
import { html } from '../pages/html.ts';
import { type Page, sendPage } from '../pages/page.ts';

const pages = new Set([
  ...['checkoutSuccess', 'checkoutCancel', 'developmentPayment', 'chooseDevelopmentPayment'],
  ...['finishGithubConnection', 'chooseGithubInstallation'],
  'readSharedThread',
]);

/** Whether a person sees the answer: a browser on one of our pages. Programs get JSON from the same paths. */
export function wantsPage(req: Request): boolean {
  const { area, id = '' } = req.operation ?? {};
  return (area === 'Sign-in' || pages.has(id)) && (req.get('accept') ?? '').includes('text/html');
}

/** Shows a failure as a page where a person sees it. */
export function pageErrors(): ErrorRequestHandler {
  return (error: unknown, req, res, next) => {
    if (!wantsPage(req) || res.headersSent) return next(error);
    const { status, code, detail, retryAfterSeconds } = describeFailure(error);
    res.locals.failureCode = code;
    if (status >= 500) req.log.error({ err: loggable(error), requestId: req.id }, code);
    if (retryAfterSeconds !== undefined) res.setHeader('retry-after', String(retryAfterSeconds));
    sendPage(
      res,
      problemPage({ status, detail, requestId: String(req.id), isOfSignIn: req.operation?.area === 'Sign-in' }),
    );
  };
}

function problemPage({
  status,
  detail,
  requestId,
  isOfSignIn,
}: {
  status: number;
  detail: string;
  requestId: string;
  isOfSignIn: boolean;
}): Page {
  return {
    title: status >= 500 ? 'Something went wrong' : 'This did not work',
    status,
    body: html`<p class="wrong" role="alert">${detail}</p>
${isOfSignIn && html`<a class="button second" href="/auth/sign-in">Back to sign-in</a>`}
<p class="quiet">Request <code>${requestId}</code></p>`,
  };
}
