/** A bug of ours: it never comes to an end, and never waits. */
export async function spin(): Promise<never> {
  for (;;);
}

export async function answer(): Promise<number> {
  return 42;
}
