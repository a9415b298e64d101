import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** What spaces show to git servers. */
export const gitCredentials: Migration = {
  name: '0027-git-credentials',
  async up({ sequelize }) {
    // `sealed` is the password or token; where a hosting provider's installation makes one when it is needed, there is
    // none.
    await sequelize.query(`CREATE TABLE IF NOT EXISTS git_credentials (
      id VARCHAR(40) NOT NULL PRIMARY KEY,
      space_id VARCHAR(40) NOT NULL,
      name VARCHAR(200) NOT NULL,
      host VARCHAR(300) NOT NULL,
      path_prefix VARCHAR(500) NOT NULL,
      username VARCHAR(255) NOT NULL,
      sealed BLOB NULL,
      provider VARCHAR(40) NULL,
      installation_id VARCHAR(40) NULL,
      status ENUM('active','suspended','removed') NOT NULL,
      created_by VARCHAR(40) NULL,
      created_at DATETIME(3) NOT NULL,
      KEY git_credentials_space (space_id, id),
      UNIQUE KEY git_credentials_installation (space_id, provider, installation_id)
    ) ${tableOptions}`);
  },
};
