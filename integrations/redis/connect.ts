export type RedisClient = Awaited<ReturnType<typeof connectionTo>>;

const answerTimeoutMs = 5_000;
/** The most commands that wait for an answer. Further ones are refused at once. */
const longestQueue = 100;

/**
 * Returns a working connection, or rejects within a few seconds. The connection does not reconnect: `onLost` reports
 * its loss, and its owner opens another.
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

/** Waits a few seconds for an answer, then ends the connection, on which no answer can be relied on any more. */
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

/** Closes the connection. Commands that wait for an answer reject. */
export function endRedis(client: RedisClient): void {
  if (client.isOpen) client.destroy();
}

/**
 * Loaded on demand: the client has five hundred modules, a fifth of what a start would load. Most installations have no
 * Redis.
 */
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
