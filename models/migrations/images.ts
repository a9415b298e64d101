import type { Migration } from './migration.ts';

/** How long the name of an image may be, with the name of its registry. */
const base = 'base VARCHAR(400) NOT NULL -- debian, agents, the id of an environment, or an image of a registry';

const changesOf = {
  environments: { first: undefined, changes: `MODIFY COLUMN ${base}` },
  environment_versions: {
    first: 'image',
    changes: `ADD COLUMN image VARCHAR(500) NULL, -- the image that the build begins with, by its digest
      ADD COLUMN warnings TEXT NULL, -- JSON list: what the image says and has no meaning here
      MODIFY COLUMN ${base}`,
  },
  computers: {
    first: 'image',
    changes: 'ADD COLUMN image VARCHAR(500) NULL -- the image whose files it begins with, by its digest',
  },
};

/** Images of registries as what environments begin with. */
export const images: Migration = {
  name: '0010-images',
  async up(queryInterface) {
    for (const [table, { first, changes }] of Object.entries(changesOf)) {
      if (first !== undefined && first in (await queryInterface.describeTable(table))) continue;
      await queryInterface.sequelize.query(`ALTER TABLE ${table} ${changes}`);
    }
  },
};
