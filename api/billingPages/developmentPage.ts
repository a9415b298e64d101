import { escapeHtml, type Page } from './page.ts';

/** The page of the development provider: says what it is, and asks how the payment shall go. */
export function developmentPage(payment: { sessionId: string; amount: string; isOpen: boolean }): Page {
  const action = (choice: string) => `/api/billing/development/${encodeURIComponent(payment.sessionId)}/${choice}`;
  const button = (choice: string, label: string, first = false) =>
    `<form method="post" action="${escapeHtml(action(choice))}"><button${first ? ' class="first"' : ''}>${label}</button></form>`;
  const choices = payment.isOpen
    ? `${button('pay', 'Pay', true)}${button('fail', 'Fail')}${button('cancel', 'Cancel')}`
    : '<p>This payment has ended.</p>';
  return {
    title: 'Development payment',
    body:
      '<p class="note"><strong>Development payment.</strong> No payment provider is configured, and no money moves.</p>' +
      `<h1>Credits</h1><p class="amount">${escapeHtml(payment.amount)}</p>${choices}`,
  };
}
