export type RedisClient = Awaited<ReturnType<typeof connectionTo>>;

const answerTimeoutMs = 5_000;
/** Statements that wait for an answer. More are refused at once. */
const longestQueue = 100;

/**
 * * A connection that is up, or a rejection in a few seconds. It does not come back by itself: `onLost` says once that
 * it is gone, and its owner makes another.
 */
export async function connectRedis(
  url: string,
  { onLost, signal }: { onLost: (error: unknown) => void; signal: AbortSignal },
): Promise<RedisClient> {
  const client = await connectionTo(url);
  client.on('error', onLost);
  await soon(client, signal, () => client.connect());
  return client;
}

/** Waits a few seconds for an answer, then ends the connection: no answer on it can be trusted to come. */
export async function soon<T>(client: RedisClient, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const late = new Error(`Redis did not answer for ${answerTimeoutMs} ms.`);
  const { promise, reject } = Promise.withResolvers<never>();
  const giveUp = () => reject(signal.aborted ? signal.reason : late);
  const timer = setTimeout(giveUp, answerTimeoutMs);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    signal.throwIfAborted();
    return await Promise.race([work(), promise]);
  } catch (error) {
    endRedis(client);
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', giveUp);
  }
}

/** Cuts the connection: whatever waits for an answer is rejected. */
export function endRedis(client: RedisClient): void {
  if (client.isOpen) client.destroy();
}

/** The client is five hundred modules, a fifth of what a start would load, and most installations have no Redis. */
async function connectionTo(url: string) {
  const { createClient } = await import('@redis/client');
  return createClient({
    url,
    socket: { connectTimeout: answerTimeoutMs, reconnectStrategy: false },
    disableOfflineQueue: true,
    commandsQueueMaxLength: longestQueue,
    maintNotifications: 'disabled',
  });
}
