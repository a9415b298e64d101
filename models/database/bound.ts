import { type Sequelize, Transaction } from 'sequelize';
import { oneFor } from '../../base/oneFor.ts';
import type { Database } from './database.ts';

/** Where a statement runs: in a transaction, or directly on a database. Either leads to the models of its database. */
export type On = Pick<Database, 'sequelize'> | Transaction;

/**
 * An area's models, defined once for each database. The classes belong to that database and not to the program, so that
 * one process can use several databases. A caller takes them from its handle: `const { Turn } = chatModels(tx)`.
 */
export function modelsOf<Models extends object>(define: (sequelize: Sequelize) => Models): (on: On) => Models {
  const defined = oneFor(define);
  return (on) => defined(sequelizeOf(on));
}

export function sequelizeOf(on: On): Sequelize {
  // A transaction has this field too, though Sequelize's types do not say so.
  return (on as { sequelize: Sequelize }).sequelize;
}

export function transactionOf(on: On): Transaction | undefined {
  return on instanceof Transaction ? on : undefined;
}
