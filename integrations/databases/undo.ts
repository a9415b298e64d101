import { endConnection } from './align.ts';
import type { TenantConnection } from './connection.ts';

/** The limit for the undo data of all transactions, which serves rollbacks and consistent reads. */
const mostUndoBytes = 2 * 1_073_741_824;

/** A transaction that has changed fewer rows, or is younger, is not at fault. */
const [fewRows, fewSeconds] = [1_000, 10];

interface Open {
  id: number;
  rows: number;
  seconds: number;
}

const onMariaDb =
  "information_schema.INNODB_SYS_TABLESPACES WHERE NAME LIKE 'innodb\\_undo%' OR NAME = 'innodb_system'";
const onMySql = "information_schema.INNODB_TABLESPACES WHERE SPACE_TYPE = 'Undo' OR NAME = 'innodb_system'";

/**
 * Limits undo data. It is in the server's files, which do not tell whose it is. So while they are too large and grow,
 * the transaction with the most changes and the oldest one are ended. The space of a rollback is free for others at
 * once, although the files shrink only later.
 */
export class UndoWatch {
  #bytes: number | undefined;
  readonly #most: number;

  constructor(most = mostUndoBytes) {
    this.#most = most;
  }

  /** Ends connections for which `isOurs` is true. Returns their number. */
  async look(connection: TenantConnection, isOurs: (id: number) => boolean): Promise<number> {
    const [files] = await connection.rows<{ bytes: number | string | null }>(
      `SELECT SUM(FILE_SIZE) AS bytes FROM ${connection.isMariaDb ? onMariaDb : onMySql}`,
    );
    const bytes = Number(files?.bytes ?? 0);
    const grows = this.#bytes !== undefined && bytes > this.#bytes;
    this.#bytes = bytes;
    if (!grows || bytes <= this.#most) return 0;
    const all = await connection.rows<Record<keyof Open, number | string>>(
      `SELECT trx_mysql_thread_id AS id, trx_rows_modified AS \`rows\`,
          UNIX_TIMESTAMP() - UNIX_TIMESTAMP(trx_started) AS seconds
         FROM information_schema.INNODB_TRX WHERE trx_state <> 'ROLLING BACK'`,
    );
    const open = all
      .map(({ id, rows, seconds }): Open => ({ id: Number(id), rows: Number(rows), seconds: Number(seconds) }))
      .filter(({ id }) => isOurs(id));
    const [largest] = open.filter(({ rows }) => rows > fewRows).toSorted((a, b) => b.rows - a.rows);
    const [oldest] = open.filter(({ seconds }) => seconds > fewSeconds).toSorted((a, b) => b.seconds - a.seconds);
    const ended = new Set([largest, oldest].flatMap((one) => one?.id ?? []));
    for (const id of ended) await endConnection(connection, id);
    // The growth up to now is theirs, so that nobody else is blamed for it.
    if (ended.size > 0) this.#bytes = undefined;
    return ended.size;
  }
}
