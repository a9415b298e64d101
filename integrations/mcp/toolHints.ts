export interface ToolHints {
  isReadOnly: boolean;
  isIdempotent: boolean;
  mayDestroy: boolean;
}

/**
 * An MCP tool's hints about itself, with the defaults of the specification (2025-11-25, schema `ToolAnnotations`):
 * `readOnlyHint` and `idempotentHint` are false; `destructiveHint` is true, and matters only if the tool is not
 * read-only. A hint that is not a boolean is ignored, since servers are not trusted.
 */
export function hintsOf(annotations: unknown): ToolHints {
  const hints = (typeof annotations === 'object' ? annotations : null) ?? {};
  const { readOnlyHint, idempotentHint, destructiveHint } = hints as Record<string, unknown>;
  const isReadOnly = readOnlyHint === true;
  return { isReadOnly, isIdempotent: idempotentHint === true, mayDestroy: !isReadOnly && destructiveHint !== false };
}
