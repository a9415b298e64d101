import type { Checkout } from '../../models/billing/checkouts.ts';
import { type Html, html } from '../frame/pages/html.ts';
import type { Page } from '../frame/pages/page.ts';
import type { CheckoutResult } from './presentBilling.ts';

const texts: Record<CheckoutResult['status'], { title: string; text: string }> = {
  unknown: { title: 'No checkout', text: 'We know no checkout for this page. Nothing was changed.' },
  open: {
    title: 'Waiting for the payment',
    text: 'We have not received a payment yet. If you have just paid, this page will say so in a moment.',
  },
  processing: {
    title: 'Payment on its way',
    text: 'The payment is still being processed. The credits are added when it arrives.',
  },
  paid: { title: 'Paid', text: 'The credits have been added to the space.' },
  mispaid: {
    title: 'Another amount was paid',
    text: 'The amount paid differs from the amount of this checkout, so nothing was credited. Please contact the operator.',
  },
  failed: { title: 'Not paid', text: 'The payment did not go through. Nothing was credited; you can try again.' },
  expired: {
    title: 'Checkout ended',
    text: 'The checkout was closed before it was paid. Nothing was credited; you can start again.',
  },
  cancelled: { title: 'Checkout cancelled', text: 'The purchase was cancelled. Nothing was credited.' },
};

/** A notification of payment arrives at about the time when its buyer returns. */
const refreshSeconds = 3;

/** Shows the true state of a checkout, whichever page its buyer returns to: "success" says so if nothing is paid. */
export function checkoutPage(result: CheckoutResult, returnUrl?: string): Page {
  const { title, text } = texts[result.status];
  const body = html`${sumOf(result)}<p role="status">${text}</p>${goBack(returnUrl)}`;
  return result.status === 'open' ? { title, body, refreshSeconds } : { title, body };
}

/** For a buyer who left a checkout that can still be paid. */
export function leftCheckoutPage(result: CheckoutResult, url: Checkout['url'], returnUrl?: string): Page {
  return {
    title: 'Not paid',
    body: html`${sumOf(result)}<p role="status">You have left the checkout. Nothing was charged.</p>
${url !== null && html`<a class="button second" href="${url}">Back to the checkout</a>`}${goBack(returnUrl)}`,
  };
}

/** A link back to the page that the buyer came from. */
function goBack(returnUrl: string | undefined): Html | undefined {
  return returnUrl === undefined
    ? undefined
    : html`\n<a class="button" href="${returnUrl}">Back to ${new URL(returnUrl).host}</a>`;
}

function sumOf({ amount, currency = '', credits }: CheckoutResult) {
  return amount !== undefined && html`<p class="amount">${credits} credits</p><p>${money(amount, currency)}</p>`;
}

/** The development provider's page: says that no money moves, and asks for the payment's outcome. */
export function developmentPage(payment: {
  sessionId: string;
  amount: number;
  currency: string;
  isOpen: boolean;
}): Page {
  const { sessionId, amount, currency, isOpen } = payment;
  const choice = (name: string, label: string, kind = 'button second') =>
    html`<form method="post" action="/api/billing/development/${encodeURIComponent(sessionId)}/${name}">
<button class="${kind}">${label}</button></form>`;
  const choices = [choice('pay', 'Pay', 'button'), choice('fail', 'Let the payment fail'), choice('cancel', 'Cancel')];
  return {
    title: 'Development payment',
    body: html`<p class="note">No payment provider is configured, and no money moves.</p>
<p class="amount">${money(amount, currency)}</p>
${isOpen ? choices : [html`<p role="status">This payment has ended.</p>`]}`,
  };
}

function money(amount: number, currency: string): string {
  return new Intl.NumberFormat('en', { style: 'currency', currency }).format(amount);
}
