/** A backup that cannot be restored, however often it is tried. */
export class RestoreRefused extends Error {
  override readonly name = 'RestoreRefused';
}

/**
 * A server that refused, or did not answer. Its own words are left out: they can quote the statement, and that can hold
 * a password.
 */
export class TenantServerError extends Error {
  override readonly name = 'TenantServerError';
  readonly errno: number | undefined;
  readonly code: string | undefined;

  constructor(cause: unknown) {
    const { code, errno } = cause as { code?: string; errno?: number };
    super(`The server for databases of spaces failed: ${code ?? 'unknown'}${errno === undefined ? '' : ` (${errno})`}`);
    this.errno = errno;
    this.code = code;
  }
}
