import { ApplicationFailure } from '@temporalio/activity';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import { cannotBeStored } from '../models/database/unstorable.ts';

/**
 * Wraps every activity: what the database will never take is not retried. The new error does not quote the old one,
 * since a statement's text contains its data.
 */
export const withoutVainRetries: ActivityInterceptorsFactory = () => ({
  inbound: {
    async execute(input, next) {
      try {
        return await next(input);
      } catch (error) {
        if (!cannotBeStored(error)) throw error;
        throw ApplicationFailure.create({
          type: 'NOT_STORABLE',
          message: 'The database cannot store this value, so a retry would not help.',
          nonRetryable: true,
        });
      }
    },
  },
});
