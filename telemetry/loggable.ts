/** An error as it is logged. */
export interface LoggableError {
  type: string;
  message: string;
  stack: string | undefined;
  code?: string;
  cause?: unknown;
}

/**
 * The fields of an error that are logged. Others are left out: a database error carries its statement with values, a
 * provider's error the whole prompt, a request's error the headers.
 */
export function loggable(error: unknown): LoggableError {
  if (!isErrorLike(error)) return { type: typeof error, message: String(error), stack: undefined };
  const { name, type, message, stack, code, cause } = error;
  return {
    // An already serialized error stays as it is.
    type: name ?? type ?? 'Error',
    message,
    stack,
    ...(typeof code === 'string' && { code }),
    ...(cause !== undefined && { cause: loggable(cause) }),
  };
}

/** Errors of another realm fail `instanceof`, so this checks their fields. */
function isErrorLike(error: unknown): error is Partial<Error> & LoggableError {
  return typeof error === 'object' && error !== null && 'message' in error && 'stack' in error;
}
