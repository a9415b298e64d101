import type { Config } from '../../config/index.ts';
import type { Checkout } from '../../models/billing/checkouts.ts';
import { toCredits } from '../../models/billing/money.ts';
import { escapeHtml, type Page } from './page.ts';

/** What the two pages that a buyer comes back to say: where the checkout truly stands, whichever page it is. */
export interface CheckoutResult {
  status: Checkout['status'] | 'unknown';
  credited: boolean;
  amount?: number;
  currency?: string;
  credits?: number;
}

export function resultOf(checkout: Checkout | undefined, { billing }: Pick<Config, 'billing'>): CheckoutResult {
  if (checkout === undefined) return { status: 'unknown', credited: false };
  const { status, amountMinor, currency, microCredits } = checkout;
  return {
    status: status === 'creating' ? 'open' : status,
    credited: status === 'paid',
    amount: amountMinor / billing.minorPerUnit,
    currency,
    credits: toCredits(microCredits),
  };
}

const texts: Record<CheckoutResult['status'], { title: string; text: string }> = {
  unknown: { title: 'No checkout', text: 'This page belongs to no checkout that we know. Nothing has been changed.' },
  creating: { title: 'Not paid yet', text: 'The checkout is being opened.' },
  open: {
    title: 'Not paid yet',
    text: 'We have not heard of a payment. If you have just paid, this page will say so in a moment.',
  },
  processing: { title: 'Payment on its way', text: 'The payment takes a while. The credits come when it has arrived.' },
  paid: { title: 'Paid', text: 'The credits have been added to the space. You can close this page.' },
  failed: { title: 'Not paid', text: 'The payment did not go through. Nothing was credited; you can try again.' },
  expired: {
    title: 'Checkout ended',
    text: 'It was closed before it was paid. Nothing was credited; you can start again.',
  },
  cancelled: { title: 'Checkout cancelled', text: 'The purchase was called off. Nothing was credited.' },
};

/** The notification of a payment comes about when its buyer does. */
const refreshSeconds = 3;

export function checkoutPage(result: CheckoutResult): Page {
  const { title, text } = texts[result.status];
  const sum =
    result.amount === undefined
      ? ''
      : `<p class="amount">${escapeHtml(`${result.credits} credits`)}</p><p>${escapeHtml(money(result.amount, result.currency ?? ''))}</p>`;
  const body = `<h1>${title}</h1>${sum}<p>${text}</p>`;
  return result.status === 'open' ? { title, body, refreshSeconds } : { title, body };
}

export function money(amount: number, currency: string): string {
  return new Intl.NumberFormat('en', { style: 'currency', currency }).format(amount);
}
