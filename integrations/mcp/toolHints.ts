export interface ToolHints {
  isReadOnly: boolean;
  isIdempotent: boolean;
  mayDestroy: boolean;
}

/**
 * What an MCP tool says about itself, with the defaults of the specification (2025-11-25, schema `ToolAnnotations`):
 * `readOnlyHint` and `idempotentHint` are false, `destructiveHint` is true and means something only where the tool does
 * not merely read. A hint that is not a boolean is ignored: servers are not trusted.
 */
export function hintsOf(annotations: unknown): ToolHints {
  const hints = (typeof annotations === 'object' ? annotations : null) ?? {};
  const { readOnlyHint, idempotentHint, destructiveHint } = hints as Record<string, unknown>;
  const isReadOnly = readOnlyHint === true;
  return { isReadOnly, isIdempotent: idempotentHint === true, mayDestroy: !isReadOnly && destructiveHint !== false };
}
