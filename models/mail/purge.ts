import type { AreaPurge } from '../database/areaPurge.ts';

export const mailPurge: AreaPurge = {
  kept: { mails: 'A mail goes when it is sent, or after its time; what is sealed in it is not said to be of a space.' },
};
