import type { Config } from '../../config/index.ts';
import { createDevelopmentProvider, type DevelopmentStore } from './development.ts';
import type { PaymentProvider, VerifiedEvent } from './provider.ts';
import { createStripeProvider } from './stripe.ts';
import { verifyWebhook } from './webhookSignature.ts';

/** This installation's payment provider, and the verification of its notifications. */
export interface Payments {
  /** Undefined if none is configured. */
  provider: PaymentProvider | undefined;
  /** Throws 400 for a notification that the provider did not sign. */
  verify(raw: Buffer, signature: string | undefined): Promise<VerifiedEvent>;
}

export function createPayments(
  config: Pick<Config, 'billing' | 'http'>,
  store: DevelopmentStore & { webhookSecret(): Promise<string> },
): Payments {
  const { billing, http } = config;
  const { mode, stripe } = billing;
  const secrets = async () => (mode === 'development' ? [await store.webhookSecret()] : stripe.webhookSecrets);
  return {
    provider: providerOf(),
    verify: async (raw, signature) => verifyWebhook(raw, signature, await secrets(), Date.now()),
  };

  function providerOf(): PaymentProvider | undefined {
    if (mode === 'development') return createDevelopmentProvider({ store, publicUrl: http.publicUrl });
    if (stripe.secretKey === undefined) return undefined;
    return createStripeProvider({
      secretKey: stripe.secretKey,
      address: stripe.address === undefined ? undefined : new URL(stripe.address),
    });
  }
}
