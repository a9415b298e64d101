import type { AreaPurge } from '../database/areaPurge.ts';

export const egressPurge: AreaPurge = {
  ofSpace: ['egress_policies', 'egress_log'],
  kept: { egress_authorities: 'They are the installation’s.' },
};
