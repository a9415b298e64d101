import type { AreaPurge } from '../areaPurge.ts';

export const egressPurge: AreaPurge = { ofSpace: ['egress_policies', 'egress_log'] };
