/** A backup that can never be restored. */
export class RestoreRefused extends Error {
  override readonly name = 'RestoreRefused';
}

/** A row that needs more memory than is allowed. */
export class RowTooLarge extends Error {
  override readonly name = 'RowTooLarge';
  /** The table of the row, if known. */
  readonly table: string | undefined;
  readonly maxBytes: number;

  constructor(maxBytes: number, table?: string) {
    super('A row is too large to be read.');
    this.table = table;
    this.maxBytes = maxBytes;
  }
}

/** The server refused, or did not answer. Its message is left out, because it can quote a password. */
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

/** The code of an incomplete dump. */
export const notWhole = 'DUMP_IS_NOT_WHOLE';

/** Too many connections, lock conflicts, and ended statements or servers. Connection errors are negative. */
const passing: ReadonlySet<number> = new Set([
  1040, 1053, 1158, 1159, 1160, 1161, 1203, 1205, 1213, 1226, 1317, 1969, 3024,
]);

/** True if a retry may succeed. */
export function mayPass({ errno = 0, code }: TenantServerError): boolean {
  return code !== notWhole && (errno <= 0 || passing.has(errno));
}
