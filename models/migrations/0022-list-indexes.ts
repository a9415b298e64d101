import type { Migration } from './migrate.ts';

const indexes = [
  // What the sweeper looks for among the purchases, oldest first, without the other running operations.
  { table: 'operations', name: 'operations_kind_sweep', columns: 'status, kind, created_at' },
  // A space's purchases, the newest first.
  { table: 'billing_checkouts', name: 'billing_checkouts_list', columns: 'space_id, id' },
];

/** Indexes for lists that were read whole and then sorted. Writers go on while they are made. */
export const listIndexes: Migration = {
  name: '0022-list-indexes',
  async up({ sequelize }) {
    for (const { table, name, columns } of indexes) {
      const [present] = await sequelize.query(`SHOW INDEX FROM ${table} WHERE Key_name = '${name}'`);
      if (present.length === 0) await sequelize.query(`ALTER TABLE ${table} ADD INDEX ${name} (${columns})`);
    }
  },
};
