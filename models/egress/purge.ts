import type { AreaPurge } from '../areaPurge.ts';

export const egressPurge: AreaPurge = {
  ofSpace: ['egress_policies', 'egress_log'],
  kept: { egress_authorities: 'They are the installation’s.' },
};
