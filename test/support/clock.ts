/** Runs `work` with this process's monotonic clock one second ahead. */
export async function aSecondLater<T>(work: () => Promise<T>): Promise<T> {
  const now = performance.now.bind(performance);
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + 1_000);
  try {
    return await work();
  } finally {
    clock.mockRestore();
  }
}
