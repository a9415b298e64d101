import type { SharedV4ProviderOptions } from '@ai-sdk/provider';

/** Marks what stands with a user's message and was not written by them; the demo model reads commands past it. */
export const aside: { providerOptions: SharedV4ProviderOptions } = { providerOptions: { demo: { aside: true } } };
