import { type BackupConfig, backupConfig } from './backup.ts';
import { type Environment, parseEnvironment } from './index.ts';

/** For commands that only look at backups and need no other setting. */
export function loadBackupConfig(environment: Environment = process.env): BackupConfig {
  return backupConfig(parseEnvironment(environment));
}
