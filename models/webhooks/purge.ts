import type { AreaPurge } from '../database/areaPurge.ts';

/** Endpoints come first, since a delivery is only added while its endpoint exists. */
export const webhooksPurge: AreaPurge = { ofSpace: ['webhook_endpoints', 'webhook_deliveries'] };
