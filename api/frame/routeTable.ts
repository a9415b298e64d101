import type { Operation } from './contract.ts';

/** A request path's match in the contract. */
export interface RouteMatch {
  /** The operations of this path, by method. */
  operations: Map<string, Operation>;
  /** Decoded. */
  params: Record<string, string>;
}

interface Route {
  segments: string[];
  operations: Map<string, Operation>;
}

/**
 * Finds the operation of a path. A literal segment always wins over a parameter (`/billing/checkout-success` before
 * `/billing/{spaceId}`), whatever the order in the contract. The table is compiled once; express-openapi-validator's
 * own lookup compiles every path on every request.
 */
export function createRouteTable(operations: readonly Operation[]) {
  const byPath = new Map<string, Route>();
  for (const operation of operations) {
    const route = byPath.get(operation.path) ?? { segments: operation.path.split('/'), operations: new Map() };
    route.operations.set(operation.method, operation);
    byPath.set(operation.path, route);
  }
  const literals = new Map([...byPath].filter(([path]) => !path.includes('{')));
  const patterns = new Map<number, Route[]>();
  for (const route of byPath.values()) {
    if (!route.segments.some(isParameter)) continue;
    const sameLength = patterns.get(route.segments.length) ?? [];
    sameLength.push(route);
    patterns.set(route.segments.length, sameLength.sort(literalFirst));
  }

  /** Undefined for an unknown path. Throws a URIError when a parameter is not well encoded. */
  return function match(path: string): RouteMatch | undefined {
    const literal = literals.get(path);
    if (literal !== undefined) return { operations: literal.operations, params: {} };
    const segments = path.split('/');
    const route = patterns.get(segments.length)?.find((candidate) => matches(candidate.segments, segments));
    return route === undefined
      ? undefined
      : { operations: route.operations, params: paramsOf(route.segments, segments) };
  };
}

function isParameter(segment: string): boolean {
  return segment.startsWith('{');
}

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  return pattern.every((part, i) => (isParameter(part) ? segments[i] !== '' : part === segments[i]));
}

function paramsOf(pattern: readonly string[], segments: readonly string[]): Record<string, string> {
  const params: Record<string, string> = {};
  pattern.forEach((part, i) => {
    if (isParameter(part)) params[part.slice(1, -1)] = decodeURIComponent(segments[i] ?? '');
  });
  return params;
}

/** Orders by the first segment that is literal in only one of the two. */
function literalFirst(a: Route, b: Route): number {
  for (const [i, part] of a.segments.entries()) {
    const difference = Number(isParameter(part)) - Number(isParameter(b.segments[i] ?? ''));
    if (difference !== 0) return difference;
  }
  return 0;
}
