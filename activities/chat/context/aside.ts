import type { SharedV4ProviderOptions } from '@ai-sdk/provider';

/**
 * Marks content in a user's message that the user did not write; the demo model skips it when it looks for commands.
 */
export const aside: { providerOptions: SharedV4ProviderOptions } = { providerOptions: { demo: { aside: true } } };
