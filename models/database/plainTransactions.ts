import type { QueryInterface, Sequelize, Transaction } from 'sequelize';
import { execute } from './sql.ts';

type Step = (transaction: Transaction) => Promise<void>;

/**
 * Begins and ends transactions with plain statements: the same words through Sequelize's own way of running a query take
 * this process longer than they take the server, three times a turn. None of ours lies within another.
 */
export function makeTransactionsPlain(sequelize: Sequelize): void {
  const ways = sequelize.getQueryInterface() as QueryInterface & Record<string, Step>;
  ways.startTransaction = async (transaction) => {
    await execute(transaction, 'START TRANSACTION', []);
  };
  ways.commitTransaction = ending('commit', 'COMMIT');
  ways.rollbackTransaction = ending('rollback', 'ROLLBACK');
}

function ending(as: 'commit' | 'rollback', statement: string): Step {
  return async (transaction) => {
    const ended = execute(transaction, statement, []);
    // Sequelize refuses further statements of this transaction from now on.
    Object.assign(transaction, { finished: as });
    await ended;
  };
}
