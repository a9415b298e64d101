/** All texts and numbers in a JSON value, as text. These are the parts that could be recognised elsewhere. */
export function leavesOf(value: unknown): string[] {
  const leaves: string[] = [];
  const left = [value];
  // A loop instead of recursion, since values may be nested very deeply.
  while (left.length > 0) {
    const one = left.pop();
    if (typeof one === 'string') leaves.push(one);
    else if (typeof one === 'number') leaves.push(String(one));
    else if (typeof one === 'object' && one !== null) for (const child of Object.values(one)) left.push(child);
  }
  return leaves;
}
