import type { PushDevice } from '../../models/push/subscriptions.ts';

export function presentPushDevice(device: PushDevice) {
  const { id, deviceName, service, createdAt, lastPushedAt } = device;
  return {
    id,
    deviceName,
    service,
    createdAt: createdAt.toISOString(),
    lastPushedAt: lastPushedAt?.toISOString() ?? null,
  };
}
