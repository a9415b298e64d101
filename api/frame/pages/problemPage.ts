import { html } from './html.ts';
import type { Page } from './page.ts';

/** What went wrong, for people. */
export function problemPage({
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
