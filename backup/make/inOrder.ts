/** Yields the results of tasks in order, with at most `atOnce` of them running. The first failure ends it. */
export async function* inOrder<T>(tasks: AsyncIterable<() => Promise<T>>, atOnce: number): AsyncGenerator<T> {
  const begun: Promise<T>[] = [];
  try {
    for await (const task of tasks) {
      const promise = task();
      promise.catch(() => undefined); // thrown when its turn comes
      begun.push(promise);
      const first = begun.length < atOnce ? undefined : begun.shift();
      if (first !== undefined) yield await first;
    }
    for (let next = begun.shift(); next !== undefined; next = begun.shift()) yield await next;
  } finally {
    await Promise.allSettled(begun);
  }
}
