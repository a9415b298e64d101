import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** Which spaces may use which installations at a hosting provider, and who has proven it. */
export const gitInstallations: Migration = {
  name: '0030-git-installations',
  async up({ sequelize }) {
    const tables = [
      // `repositories` says whether all of the installation was proven, or those of the next table; `proven_by` is who
      // has done so at the provider. At `due_at` the provider is asked again how it is.
      `CREATE TABLE IF NOT EXISTS git_installations (
        space_id VARCHAR(40) NOT NULL,
        provider VARCHAR(40) NOT NULL,
        installation_id VARCHAR(40) NOT NULL,
        account VARCHAR(200) NOT NULL,
        account_id VARCHAR(40) NOT NULL,
        proof ENUM('person','operator') NOT NULL,
        proven_by VARCHAR(100) NOT NULL,
        proven_by_id VARCHAR(40) NULL,
        repositories ENUM('all','listed') NOT NULL,
        status ENUM('active','suspended','removed') NOT NULL,
        created_by VARCHAR(40) NULL,
        created_at DATETIME(3) NOT NULL,
        due_at DATETIME(3) NOT NULL,
        PRIMARY KEY (space_id, provider, installation_id),
        KEY git_installations_installation (provider, installation_id),
        KEY git_installations_due (due_at)
      )`,
      // `path` is in lower-case letters: providers do not tell the cases apart.
      `CREATE TABLE IF NOT EXISTS git_installation_repositories (
        space_id VARCHAR(40) NOT NULL,
        provider VARCHAR(40) NOT NULL,
        installation_id VARCHAR(40) NOT NULL,
        path VARCHAR(300) NOT NULL,
        repository_id VARCHAR(40) NOT NULL,
        may_write TINYINT(1) NOT NULL,
        PRIMARY KEY (space_id, provider, installation_id, path)
      )`,
      // Somebody who is proving what is theirs: first at the provider, then, with `sealed`, choosing.
      `CREATE TABLE IF NOT EXISTS git_connections (
        hash BINARY(32) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        user_id VARCHAR(40) NOT NULL,
        provider VARCHAR(40) NOT NULL,
        sealed MEDIUMBLOB NULL,
        expires_at DATETIME(3) NOT NULL,
        KEY git_connections_space (space_id),
        KEY git_connections_expires (expires_at)
      )`,
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
  },
};
