import type { AreaPurge } from '../database/areaPurge.ts';

/** Endpoints first: a delivery is only added while its endpoint is there. */
export const webhooksPurge: AreaPurge = { ofSpace: ['webhook_endpoints', 'webhook_deliveries'] };
