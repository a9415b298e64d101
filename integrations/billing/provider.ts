/** A hosted checkout, as the provider sees it. */
export interface ProviderCheckout {
  sessionId: string;
  /** The id of our checkout, which we gave the session. */
  checkoutId: string | null;
  status: 'open' | 'complete' | 'expired';
  paid: boolean;
  /** In the currency's smallest unit. */
  amountMinor: number;
  /** Lower-case. */
  currency: string;
  paymentId: string | null;
}

/** `returned`: the refund failed, and the money came back to us. */
export interface ProviderRefund {
  id: string;
  amountMinor: number;
  returned: boolean;
}

/** A successful charge of the saved means of payment. */
export interface ProviderCharge {
  paymentId: string;
  checkoutId: string | null;
  amountMinor: number;
  currency: string;
}

export interface NewCheckout {
  checkoutId: string;
  spaceId: string;
  customerId: string;
  amountMinor: number;
  currency: string;
  /** The person returns to this. The provider inserts the session's id. */
  successUrl: string;
  cancelUrl: string;
  expiresAt: Date;
}

/** A notification in our terms. `other` is acknowledged and stored, without further effect. */
export type PaymentNotice =
  | { kind: 'checkout'; change: 'completed' | 'paid' | 'failed' | 'expired'; checkout: ProviderCheckout }
  | ({ kind: 'charged' } & ProviderCharge)
  | { kind: 'refunded'; paymentId: string | null; checkoutId: string | null }
  | {
      kind: 'dispute';
      disputeId: string;
      paymentId: string | null;
      amountMinor: number;
      /** Whether the money was taken, and whether it came back. */
      taken: boolean;
      returned: boolean;
    }
  | { kind: 'other' };

/** A notification with a valid signature. */
export interface VerifiedEvent {
  id: string;
  type: string;
  /** The body as received. */
  payload: string;
}

/**
 * A payment provider. Each call that creates an object is idempotent by our id, so that a retried activity creates it
 * once. Failures are {@link PaymentProviderError}s.
 */
export interface PaymentProvider {
  readonly name: 'stripe' | 'development';
  createCustomer(input: { spaceId: string; name: string; email: string | undefined }): Promise<{ id: string }>;
  createCheckout(input: NewCheckout): Promise<{ id: string; url: string }>;
  /** Undefined if the provider does not know the session. */
  findCheckout(sessionId: string): Promise<ProviderCheckout | undefined>;
  checkoutOfPayment(paymentId: string): Promise<ProviderCheckout | undefined>;
  /** Closes an open session, so that it can no longer be paid. */
  expireCheckout(sessionId: string): Promise<void>;
  /** All refunds, including failed ones. */
  refundsOf(paymentId: string): Promise<ProviderRefund[]>;
  /** Charges the customer's saved means of payment. */
  charge(input: {
    checkoutId: string;
    spaceId: string;
    customerId: string;
    amountMinor: number;
    currency: string;
  }): Promise<{ status: 'paid' | 'refused'; paymentId: string | null }>;
  checkoutsSince(after: Date): AsyncIterable<ProviderCheckout>;
  /** Successful charges, including those of checkouts. */
  chargesSince(after: Date): AsyncIterable<ProviderCharge>;
  /** Parses a stored event. */
  readNotice(payload: string): PaymentNotice;
}

/** The provider answered with an error, or not at all. `permanent`: the same call would fail again. */
export class PaymentProviderError extends Error {
  override readonly name = 'PaymentProviderError';
  readonly permanent: boolean;

  constructor(message: string, options: { permanent: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.permanent = options.permanent;
  }
}
