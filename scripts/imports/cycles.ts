/** The shortest cycle through each group of nodes that reach each other, starting at the first of its nodes by name. */
export function cyclesOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  for (const start of [...graph.keys()].sort()) {
    if (done.has(start)) continue;
    const cycle = circleThrough(graph, start);
    if (cycle === undefined) continue;
    cycles.push(cycle);
    // Report one cycle. Others of the group show up once it is fixed.
    for (const node of cycle) done.add(node);
  }
  return cycles;
}

/** Searches breadth first, so that the cycle is a shortest one. */
function circleThrough(graph: ReadonlyMap<string, readonly string[]>, start: string): string[] | undefined {
  const from = new Map<string, string>();
  const open = [start];
  for (const node of open) {
    for (const next of graph.get(node) ?? []) {
      if (next === start) return wayTo(from, start, node);
      if (from.has(next)) continue;
      from.set(next, node);
      open.push(next);
    }
  }
  return undefined;
}

function wayTo(from: ReadonlyMap<string, string>, start: string, end: string): string[] {
  const way = [end];
  for (let node = end; node !== start; ) {
    node = from.get(node) ?? start;
    way.unshift(node);
  }
  return way;
}
