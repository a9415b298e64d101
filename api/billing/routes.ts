import { DomainError } from '../../base/errors.ts';
import { beginTopUp } from '../../models/billing/beginTopUp.ts';
import { findCheckout } from '../../models/billing/checkouts.ts';
import { toMicro, toMinor } from '../../models/billing/money.ts';
import { readBalances } from '../../models/billing/report.ts';
import { readSettings, saveAutoTopUp, saveCaps } from '../../models/billing/settings.ts';
import { beginSetup, findSetup } from '../../models/billing/setup.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { answerLater, failureOf, GoesOn, runOperation, waitForRow } from '../frame/operationAnswer.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { requireReturnUrl } from '../frame/returnUrls.ts';
import { createRouter } from '../frame/router.ts';
import { presentAutoTopUp, presentBilling, presentCaps } from './presentBilling.ts';

/** A space's credits: the balances, purchases, and limits on spending. */
export function billingRoutes(deps: RouteDeps) {
  const { database, config } = deps;
  const { billing } = config;
  const router = createRouter();

  router.get('/api/billing/:spaceId', async (req, res) => {
    const { spaceId } = pathOf<'getBilling'>(req);
    const [balances, settings, setup] = await Promise.all([
      readBalances(database, spaceId),
      readSettings(database, spaceId),
      findSetup(database, spaceId),
    ]);
    answer<'getBilling'>(res, 200, presentBilling(balances, { ...settings, setUp: setup?.status === 'ready' }, config));
  });

  router.post('/api/billing/:spaceId/setup', async (req, res) => {
    const { userId } = callerOf(req);
    const { spaceId } = pathOf<'setUpBilling'>(req);
    const micro = toMicro(bodyOf<'setUpBilling'>(req).initialCredits ?? 0);
    const begun = await beginSetup(database, { spaceId, userId, micro, limits: billing.initialMicro });
    if (begun === 'ready') return void answer<'setUpBilling'>(res, 200, { ok: true });
    const ended = await runOperation(deps, req, begun);
    if (ended === undefined) return answerLater(res, begun);
    if (ended.status !== 'succeeded') throw failureOf(ended);
    answer<'setUpBilling'>(res, 200, { ok: true });
  });

  router.post('/api/billing/:spaceId/top-up', async (req, res) => {
    const { userId } = callerOf(req);
    const { spaceId } = pathOf<'topUpBilling'>(req);
    const { amount, returnUrl: wanted } = bodyOf<'topUpBilling'>(req);
    const amountMinor = readAmount(amount, '/amount');
    const returnUrl = requireReturnUrl(wanted, config, '/returnUrl');
    const { currency, microPerMinor, mode } = billing;
    if (mode === 'none') throw noPayments();
    await makeOnce<'topUpBilling'>(
      deps,
      req,
      res,
      'checkout',
      async (id) => {
        const microCredits = amountMinor * microPerMinor;
        const operation = await beginTopUp(database, {
          ...{ id, spaceId, userId, amountMinor, currency, microCredits },
          provider: mode,
          returnUrl,
        });
        if (operation.status === 'running') void deps.launcher.startOperation(operation);
        const opened = await waitForRow(req, async () => {
          const checkout = await findCheckout(database, 'id', id);
          return checkout?.url !== null || checkout.endedAt !== null ? checkout : undefined;
        });
        if (opened === undefined) return new GoesOn(operation);
        if (opened.url !== null) return { url: opened.url, checkoutId: id, operationId: operation.id };
        throw new DomainError(
          'upstream',
          'PAYMENT_PROVIDER_FAILED',
          'The payment provider refused the request or did not answer. Try again later.',
        );
      },
      { status: 200 },
    );
  });

  router.put('/api/billing/:spaceId/caps', async (req, res) => {
    const { spaceId } = pathOf<'setSpendingCaps'>(req);
    const { perTurn, perDay, perMemberPerDay } = bodyOf<'setSpendingCaps'>(req);
    const micro = (credits: number | null) => (credits === null ? null : toMicro(credits));
    const caps = { perTurn: micro(perTurn), perDay: micro(perDay), perMemberPerDay: micro(perMemberPerDay) };
    await saveCaps(database, spaceId, caps, actorOf(req));
    answer<'setSpendingCaps'>(res, 200, presentCaps(caps));
  });

  router.put('/api/billing/:spaceId/auto-top-up', async (req, res) => {
    const { spaceId } = pathOf<'setAutoTopUp'>(req);
    const { enabled, threshold, amount, monthlyLimit } = bodyOf<'setAutoTopUp'>(req);
    const amountMinor = amount === undefined ? null : readAmount(amount, '/amount');
    const limit = monthlyLimit === undefined ? null : toMinor(monthlyLimit, billing.currency);
    if (limit === undefined) throw refused('AMOUNT_NOT_ALLOWED', '/monthlyLimit', 'has too many decimals');
    if (enabled) {
      if (billing.mode === 'none') throw noPayments();
      if (threshold === undefined || amountMinor === null || limit === null) {
        throw incomplete({ threshold, amount, monthlyLimit });
      }
      if (limit < amountMinor) {
        throw refused('AMOUNT_NOT_ALLOWED', '/monthlyLimit', 'is less than the amount of one top-up');
      }
    }
    await saveAutoTopUp(database, spaceId, actorOf(req), {
      enabled,
      threshold: threshold === undefined ? null : toMicro(threshold),
      amountMinor,
      monthlyLimitMinor: limit,
    });
    const { autoTopUp } = await readSettings(database, spaceId);
    answer<'setAutoTopUp'>(res, 200, presentAutoTopUp(autoTopUp, billing.minorPerUnit));
  });

  /** Money in the currency's smallest unit: at most two decimals, between the allowed minimum and maximum. */
  function readAmount(amount: number, pointer: string): number {
    const { min, max } = billing.topUp;
    if (amount < min || amount > max) throw refused('AMOUNT_NOT_ALLOWED', pointer, `is not between ${min} and ${max}`);
    const minor = toMinor(amount, billing.currency);
    if (minor === undefined) throw refused('AMOUNT_NOT_ALLOWED', pointer, 'has too many decimals');
    return minor;
  }

  return router;
}

function refused(code: string, pointer: string, detail: string): DomainError {
  const message = `The ${pointer.slice(1)} ${detail}.`;
  return new DomainError('unprocessable', code, message, { errors: [{ pointer, detail }] });
}

function incomplete(fields: Record<string, number | undefined>): DomainError {
  const missing = Object.keys(fields).filter((name) => fields[name] === undefined);
  return new DomainError(
    'unprocessable',
    'AUTO_TOP_UP_INCOMPLETE',
    `To enable auto top-up, also set ${missing.join(' and ')}.`,
    {
      errors: missing.map((name) => ({ pointer: `/${name}`, detail: 'is required' })),
    },
  );
}

function noPayments(): DomainError {
  return new DomainError(
    'unprocessable',
    'PAYMENTS_NOT_CONFIGURED',
    'Credits cannot be bought here, because the operator has not configured a payment provider.',
  );
}
