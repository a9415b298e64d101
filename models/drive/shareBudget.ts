/**
 * Divides a budget fairly among directories of these sizes: nobody gets more than it has entries, and what small ones leave goes to
 * the larger ones in equal parts (max-min fairness). What cannot be divided goes to the first ones.
 */
export function shareBudget(sizes: readonly number[], budget: number): number[] {
  const shares = sizes.map(() => 0);
  const smallestFirst = sizes.map((size, index) => ({ size, index })).sort((a, b) => a.size - b.size);
  let left = budget;
  let waiting = smallestFirst.length;
  for (const { size, index } of smallestFirst) {
    const share = Math.min(size, Math.floor(left / waiting));
    shares[index] = share;
    left -= share;
    waiting -= 1;
  }
  for (let index = 0; index < sizes.length && left > 0; index++) {
    if ((shares[index] ?? 0) >= (sizes[index] ?? 0)) continue;
    shares[index] = (shares[index] ?? 0) + 1;
    left -= 1;
  }
  return shares;
}
