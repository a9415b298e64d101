import type { Connection } from 'mysql2';
import type { QueryInterface, Sequelize, Transaction } from 'sequelize';

/** What of a transaction its types do not tell. */
interface Begun {
  connection: Connection;
  /** Once it is set, Sequelize refuses further statements of this transaction. */
  finished?: 'commit' | 'rollback';
}

type Step = (transaction: Transaction) => Promise<void>;

/**
 * Begins and ends transactions with plain statements: the same words through Sequelize's own way of running a query take
 * this process longer than they take the server, three times a turn. None of ours lies within another.
 */
export function makeTransactionsPlain(sequelize: Sequelize): void {
  const ways = sequelize.getQueryInterface() as QueryInterface & Record<string, Step>;
  ways.startTransaction = (transaction) => run(transaction, 'START TRANSACTION');
  ways.commitTransaction = ending('commit', 'COMMIT');
  ways.rollbackTransaction = ending('rollback', 'ROLLBACK');
}

function ending(as: 'commit' | 'rollback', statement: string): Step {
  return (transaction) => {
    const ended = run(transaction, statement);
    (transaction as unknown as Begun).finished = as;
    return ended;
  };
}

function run(transaction: Transaction, statement: string): Promise<void> {
  const { connection } = transaction as unknown as Begun;
  return new Promise((resolve, reject) => {
    connection.query(statement, (error) => (error ? reject(error) : resolve()));
  });
}
