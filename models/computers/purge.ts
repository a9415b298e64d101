import type { AreaPurge } from '../areaPurge.ts';

export const computersPurge: AreaPurge = {
  ofSpace: ['computers'],
  kept: {
    computer_hosts: 'They are the installation’s.',
    computer_remains: 'They name homes that a host still has to remove, and nothing of their space.',
  },
};
