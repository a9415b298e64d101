/** Stands for a bug: this workflow never ends and never waits. */
export async function spin(): Promise<never> {
  for (;;);
}

export async function answer(): Promise<number> {
  return 42;
}
