import type { AreaPurge } from '../database/areaPurge.ts';

export const pushPurge: AreaPurge = {
  ofTurn: ['turn_receipts'],
  kept: {
    push_subscriptions: 'They are devices of people, for all of their spaces.',
    push_keys: 'They are the installation’s.',
  },
};
