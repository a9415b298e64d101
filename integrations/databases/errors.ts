/** A backup that cannot be restored, however often it is tried. */
export class RestoreRefused extends Error {
  override readonly name = 'RestoreRefused';
}

/** A row that takes more memory than any may. */
export class RowTooLarge extends Error {
  override readonly name = 'RowTooLarge';
  /** Whose row it is, where that is known. */
  readonly table: string | undefined;
  readonly maxBytes: number;

  constructor(maxBytes: number, table?: string) {
    super('A row is too large to be read.');
    this.table = table;
    this.maxBytes = maxBytes;
  }
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

/** The code of a dump that cannot be read to its end. */
export const notWhole = 'DUMP_IS_NOT_WHOLE';

/** Of too many connections, locks, a statement or a server that was ended; the connection itself has negative ones. */
const passing: ReadonlySet<number> = new Set([
  1040, 1053, 1158, 1159, 1160, 1161, 1203, 1205, 1213, 1226, 1317, 1969, 3024,
]);

/** Whether the same may succeed when it is tried again. */
export function mayPass({ errno = 0, code }: TenantServerError): boolean {
  return code !== notWhole && (errno <= 0 || passing.has(errno));
}
