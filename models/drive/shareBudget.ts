/**
 * Divides a budget fairly among directories of these sizes: no directory gets more than it has entries, and what small
 * ones leave is divided equally among the larger ones (max-min fairness). A remainder goes to the first of equals.
 */
export function shareBudget(sizes: readonly number[], budget: number): number[] {
  const shares = sizes.map(() => 0);
  // Each takes its part of what is left, rounded down: what rounding leaves is for those who come later.
  const order = sizes.map((size, index) => ({ size, index })).sort((a, b) => a.size - b.size || b.index - a.index);
  let left = budget;
  let waiting = order.length;
  for (const { size, index } of order) {
    const share = Math.min(size, Math.floor(left / waiting));
    shares[index] = share;
    left -= share;
    waiting -= 1;
  }
  return shares;
}
