import type { WebhookDelivery } from '../../models/webhooks/deliveries.ts';
import type { WebhookEndpoint } from '../../models/webhooks/endpoints.ts';
import type { AnswerOf } from '../frame/answer.ts';
import { optionalTime, time } from '../frame/times.ts';

export function presentEndpoint(endpoint: WebhookEndpoint): AnswerOf<'getWebhookEndpoint'> {
  const { id, spaceId, url, events, enabled, disabledCode, disabledAt, createdBy, createdAt, updatedAt } = endpoint;
  return {
    ...{ id, spaceId, url, enabled, createdBy },
    events: events.filter((type) => type !== 'ping'),
    disabled: disabledCode === null || disabledAt === null ? null : { code: disabledCode, at: time(disabledAt) },
    failingSince: optionalTime(endpoint.failingSince),
    createdAt: time(createdAt),
    updatedAt: time(updatedAt),
  };
}

export function presentWebhookDelivery(delivery: WebhookDelivery): AnswerOf<'getWebhookDelivery'> {
  const { id, endpointId, type, body, status, attempts, lastAnswer, lastError } = delivery;
  return {
    ...{ id, endpointId, type, status, attempts, lastAnswer, lastError },
    body: JSON.parse(body) as AnswerOf<'getWebhookDelivery'>['body'],
    nextAttemptAt: optionalTime(delivery.nextAttemptAt),
    createdAt: time(delivery.createdAt),
    endedAt: optionalTime(delivery.endedAt),
  };
}
