import type { AreaSchema } from '../database/areaSchema.ts';

export const mailSchema: AreaSchema = {
  kept: { mails: 'A mail goes when it is sent, or after its time; what is sealed in it is not said to be of a space.' },
};
